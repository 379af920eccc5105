//! The English texts.

use super::Message;

pub(super) const fn template(message: Message) -> &'static str {
    match message {
        Message::Status => "Progress {bar} {current}/{limit} ({percent}%)",
        Message::IterationWarning => {
            "Iteration {current} of {limit}, {remaining} left. \
             Look at what is still missing and head for an answer."
        }
        Message::IterationSoftLimit => {
            "Iteration {current} of {limit}, only {remaining} left. \
             Begin nothing new: finish what is open, then answer."
        }
        Message::IterationLast => {
            "Iteration {current} of {limit} is the last one that runs ({remaining} to the limit). \
             Answer now with what you have."
        }
        Message::IterationHardLimit => {
            "Iteration {current} does not run: the limit of {limit} is reached."
        }
        Message::LoopExact => "{tools} was called {count} times in a row with the same arguments.",
        Message::LoopSimilar => {
            "{tools} was called {count} times in a row with nearly the same arguments."
        }
        Message::LoopOscillating => "The calls {calls} alternate.",
        Message::LoopPeriodic => "The same {count} turns come again and again: {calls}.",
        Message::LoopErrors => "{tools} failed {count} times in the same way.",
        Message::LoopScatter => {
            "The same call of {tools} brought the same result {count} times, \
             and nothing was changed in between."
        }
        Message::LoopCoverage => "The last {count} reads with {tools} brought hardly a new line.",
        Message::LoopLookups => {
            "The last {count} lookups with {tools} found nothing, or all the same."
        }
        Message::SuggestExact => "Use the result that is there, or do something else.",
        Message::SuggestSimilar => {
            "Small changes to the arguments do not help: change what is asked for."
        }
        Message::SuggestOscillating => "Decide on one of the two, or do what neither of them does.",
        Message::SuggestPeriodic => "Leave the cycle at a step that can be done differently.",
        Message::SuggestErrors => "Read the error: correct what it names, or do without this tool.",
        Message::SuggestScatter => "Work with the result that is there, or change something first.",
        Message::SuggestCoverage => "What was read is known: use it, or look elsewhere.",
        Message::SuggestLookups => {
            "What is looked for is probably not there: look in another way, or go on without it."
        }
        Message::LoopWarning => {
            "Loop detected ({type}): {description}\nTools: {tools}\n{suggestion}\n\
             Ways out:\n1. Stop here and report what there is.\n\
             2. Change the approach: another tool, other arguments, another plan.\n\
             3. If the task is done, answer."
        }
        Message::Blocked => "This call was not run.",
        Message::Stopped => "The run is stopped.",
        Message::BudgetWarning => "{percent}% of the {name} are used up ({used} of {limit}).",
        Message::BudgetExhausted => "The {name} are used up ({used} of {limit}).",
        Message::Terminated => "The run was ended: {reason}",
        Message::Summary => {
            "Iterations: {iterations} of {limit}\nTool calls: {calls}\nDuration: {seconds} s\n\
             Outcome: {outcome}"
        }
        Message::OutcomeRunning => "not ended",
        Message::OutcomeEnded => "ended ({reason})",
    }
}
