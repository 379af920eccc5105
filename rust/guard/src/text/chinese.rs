//! The Chinese texts.

use super::Message;

pub(super) const fn template(message: Message) -> &'static str {
    match message {
        Message::Status => "进度 {bar} {current}/{limit}（{percent}%）",
        Message::IterationWarning => {
            "第 {current} 轮，共 {limit} 轮，还剩 {remaining} 轮。请确认还缺什么，并着手给出答案。"
        }
        Message::IterationSoftLimit => {
            "第 {current} 轮，共 {limit} 轮，仅剩 {remaining} 轮。不要再开始新的工作，收尾后作答。"
        }
        Message::IterationLast => {
            "第 {current} 轮是最后能执行的一轮（上限 {limit}，距上限 {remaining}）。请立即用已有信息作答。"
        }
        Message::IterationHardLimit => "已达到上限 {limit} 轮，第 {current} 轮不再执行。",
        Message::LoopExact => "{tools} 以相同的参数连续调用了 {count} 次。",
        Message::LoopSimilar => "{tools} 以几乎相同的参数连续调用了 {count} 次。",
        Message::LoopOscillating => "以下调用在来回交替：{calls}。",
        Message::LoopPeriodic => "同样的 {count} 步在不断重复：{calls}。",
        Message::LoopErrors => "{tools} 以同样的方式失败了 {count} 次。",
        Message::LoopScatter => "{tools} 的同一调用 {count} 次返回同样的结果，其间没有任何改动。",
        Message::LoopCoverage => "用 {tools} 进行的最近 {count} 次读取几乎没有带来新内容。",
        Message::LoopLookups => "用 {tools} 进行的最近 {count} 次查找没有结果，或结果全都一样。",
        Message::SuggestExact => "请使用已有的结果，或换一件事做。",
        Message::SuggestSimilar => "微调参数没有用，请改变所求的内容。",
        Message::SuggestOscillating => "请在两者之间做出选择，或另辟蹊径。",
        Message::SuggestPeriodic => "请在某一步换一种做法，跳出循环。",
        Message::SuggestErrors => "请仔细阅读错误信息并改正其所指之处，或不再使用该工具。",
        Message::SuggestScatter => "请利用已有的结果，或先做出改动。",
        Message::SuggestCoverage => "这些内容已经读过，请直接使用，或查看别处。",
        Message::SuggestLookups => "要找的东西很可能不存在，请换一种找法，或不依赖它继续。",
        Message::LoopWarning => {
            "检测到循环（{type}）：{description}\n相关工具：{tools}\n{suggestion}\n\
             出路：\n1. 就此停止，汇报已有的结果。\n2. 改变做法：换工具、换参数或换计划。\n\
             3. 如果任务已完成，请直接作答。"
        }
        Message::Blocked => "此次调用未执行。",
        Message::Stopped => "运行已被停止。",
        Message::BudgetWarning => "{name} 已用去 {percent}%（{used}/{limit}）。",
        Message::BudgetExhausted => "{name} 已用尽（{used}/{limit}）。",
        Message::Terminated => "运行已被终止：{reason}",
        Message::Summary => {
            "轮次：{iterations}/{limit}\n工具调用：{calls}\n用时：{seconds} 秒\n结果：{outcome}"
        }
        Message::OutcomeRunning => "未结束",
        Message::OutcomeEnded => "已结束（{reason}）",
    }
}
