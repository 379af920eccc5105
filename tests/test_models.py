"""Names of models as people write them, and the formats that they pin."""

# ruff: noqa: E501
from __future__ import annotations

import pytest
from turnwarden import ResponseParser, UnknownModelError

# A format's label, and names of models that use it: with organisations, sizes, quantisations,
# tags, and the prefixes of gateways and clouds.
NAMES: dict[str, list[str]] = {
    "hermes": [
        "NousResearch/Hermes-3-Llama-3.1-8B", "NousResearch/Hermes-2-Pro-Mistral-7B", "hermes3:8b",
        "NousResearch/Hermes-4-405B-FP8", "nousresearch/hermes-4-70b",
        "NousResearch/DeepHermes-3-Llama-3-8B-Preview", "Qwen/Qwen2.5-7B-Instruct",
        "qwen2.5:14b-instruct-q4_K_M", "qwen2.5-coder:32b", "Qwen/Qwen2.5-72B-Instruct-AWQ",
        "unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "qwen/qwen-2.5-72b-instruct:free",
        "Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3-32B-FP8", "qwen3:14b-q4_K_M", "qwen3:0.6b",
        "Qwen/Qwen3-235B-A22B-Thinking-2507", "unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M",
        "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen-max",
        "qwen-plus-2025-07-28", "qwen-turbo", "Qwen/QwQ-32B", "qwq:32b-q8_0",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
        "bartowski/DeepSeek-R1-Distill-Qwen-32B-GGUF", "HuggingFaceTB/SmolLM3-3B",
        "LGAI-EXAONE/EXAONE-4.0-32B",
    ],
    "qwen3_coder": [
        "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3-coder-30b", "qwen3-coder:480b-cloud",
        "Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen/Qwen3-Coder-Next", "qwen/qwen3-coder:free",
        "qwen.qwen3-coder-480b-a35b-v1:0", "Qwen/Qwen3.5-397B-A17B", "Qwen/Qwen3.6-35B-A3B",
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "XiaomiMiMo/MiMo-V2-Flash",
        "XiaomiMiMo/MiMo-7B-RL", "stepfun-ai/Step-3.5-Flash",
    ],
    "seed_oss": ["ByteDance-Seed/Seed-OSS-36B-Instruct", "seed-oss:36b", "bytedance/seed-oss-36b"],
    "mistral": [
        "mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo:12b", "mistral:7b-instruct-v0.3-q4_0",
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral-large-latest",
        "mistral.mistral-large-2407-v1:0", "mistralai/Mixtral-8x22B-Instruct-v0.1",
        "mistralai/Ministral-8B-Instruct-2410", "mistralai/Devstral-Small-2507",
        "devstral:24b", "mistralai/devstral-2-123b", "mistralai/Magistral-Small-2509",
        "magistral:24b-small-2506-q4_K_M", "codestral-2508", "mistralai/Pixtral-12B-2409",
        "mistralai/Voxtral-Small-24B-2507",
    ],
    "llama3_json": [
        "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-70B-Instruct", "llama3.1:8b",
        "us.meta.llama3-1-70b-instruct-v1:0", "meta.llama3-3-70b-instruct-v1:0", "llama3.3:70b",
        "meta/llama-3.1-405b-instruct-maas", "meta-llama/llama-3.3-70b-instruct:free",
        "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "llama-3.3-70b-versatile",
        "accounts/fireworks/models/llama-v3p1-8b-instruct/../llama-3.1-8b",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "meta-llama/Llama-3.2-3B-Instruct",
    ],
    "pythonic": [
        "meta-llama/Llama-4-Scout-17B-16E-Instruct", "meta-llama/llama-4-maverick:free",
        "us.meta.llama4-scout-17b-instruct-v1:0", "llama3.2:3b", "meta-llama/Llama-3.2-1B-Instruct",
        "Team-ACE/ToolACE-2-Llama-3.1-8B", "Team-ACE/ToolACE-8B", "watt-ai/watt-tool-70B",
    ],
    "pythonic/olmo3": ["allenai/Olmo-3-7B-Instruct", "allenai/Olmo-3.1-32B-Think", "olmo-3:7b"],
    "pythonic/lfm2": ["LiquidAI/LFM2-1.2B-Tool", "LiquidAI/LFM2-8B-A1B-GGUF", "LiquidAI/LFM2.5-1.2B"],
    "pythonic/gemma3": ["google/gemma-3-27b-it", "gemma3:4b-it-qat", "google/gemma-3n-E4B-it",
                        "gemma3n:e2b"],
    "gemma4": ["google/gemma-4-31B-it", "gemma4:26b"],
    "functiongemma": ["google/functiongemma-270m-it", "functiongemma:270m"],
    "deepseek_v3": [
        "deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528",
        "deepseek-r1:671b", "deepseek/deepseek-chat-v3-0324:free", "us.deepseek.r1-v1:0",
        "cognitivecomputations/DeepSeek-V3-AWQ",
    ],
    "deepseek_v31": [
        "deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1-Terminus",
        "deepseek/deepseek-chat-v3.1", "deepseek-v3.1:671b-cloud", "deepseek-ai/DeepSeek-V3.2-Exp",
    ],
    "deepseek_v32": ["deepseek-ai/DeepSeek-V3.2", "deepseek/deepseek-v3.2-speciale", "deepseek-chat",
                     "deepseek-reasoner"],
    "deepseek_v4": ["deepseek-ai/DeepSeek-V4", "deepseek-ai/DeepSeek-V4-Flash"],
    "kimi_k2": [
        "moonshotai/Kimi-K2-Instruct-0905", "moonshotai/Kimi-K2-Thinking", "kimi-k2:1t-cloud",
        "moonshotai/kimi-k2.5", "unsloth/Kimi-K2-Instruct-GGUF:UD-Q2_K_XL",
        "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    ],
    "kimi_k3": ["moonshotai/Kimi-K3"],
    "glm45": [
        "zai-org/GLM-4.5-Air-FP8", "z-ai/glm-4.5-air:free", "zai-org/GLM-4.6", "glm-4.6:cloud",
        "zai-org/GLM-4.5V", "poolside/Laguna-XS.2",
    ],
    "glm47": ["zai-org/GLM-4.7", "zai-org/GLM-4.7-Flash", "z-ai/glm-5", "glm-5.1"],
    "hy_v3": ["tencent/Hunyuan-3", "tencent/Hy3-preview", "tencent/HY-V3"],
    "hunyuan_a13b": ["tencent/Hunyuan-A13B-Instruct", "tencent/Hunyuan-7B-Instruct-GPTQ-Int4",
                     "tencent/Hunyuan-4B-Instruct"],
    "ifm": ["LLM360/K2-Think"],
    "minimax_m1": ["MiniMaxAI/MiniMax-M1-80k", "minimax/minimax-m1"],
    "minimax_m2": ["MiniMaxAI/MiniMax-M2", "minimax/minimax-m2:free", "MiniMaxAI/MiniMax-M2.1",
                   "minimax-m2.5"],
    "minimax_m3": ["MiniMaxAI/MiniMax-M3"],
    "granite": ["ibm-granite/granite-3.3-8b-instruct", "granite3.2:2b", "ibm/granite-3-8b-instruct"],
    "granite4": ["ibm-granite/granite-4.0-h-small", "granite4:tiny-h", "ibm/granite-4-h-small"],
    "granite_20b": ["ibm-granite/granite-20b-functioncalling", "granite-20b-function-calling"],
    "internlm": ["internlm/internlm2_5-7b-chat", "internlm/internlm3-8b-instruct",
                 "internlm2:20b", "internlm/Intern-S1-FP8"],
    "jamba": ["ai21labs/AI21-Jamba-Large-1.5", "ai21.jamba-1-5-large-v1:0",
              "ai21labs/AI21-Jamba-Reasoning-3B"],
    "phi4_mini": ["microsoft/Phi-4-mini-instruct", "phi4-mini:3.8b", "microsoft/phi-4-mini-reasoning"],
    "xlam": ["Salesforce/xLAM-1b-fc-r", "Salesforce/Llama-xLAM-2-8b-fc-r", "xLAM-2-32b-fc-r-GGUF",
             "MadeAgents/Hammer2.1-7b"],
    "nemotron_deci": [
        "nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", "nvidia/Llama-3.3-Nemotron-Super-49B-v1.5",
        "nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
        "nvidia/llama-3.1-nemotron-70b-instruct",
    ],
    "longcat": ["meituan-longcat/LongCat-Flash-Chat", "meituan/longcat-flash-thinking"],
    "gigachat3": ["ai-sage/GigaChat3-10B-A1.8B", "GigaChat-2-Max"],
    "apertus": ["swiss-ai/Apertus-70B-Instruct-2509", "apertus:8b"],
    "cohere_command": ["CohereLabs/c4ai-command-a-03-2025", "command-a:111b", "command-r7b:7b",
                       "CohereLabs/command-a-reasoning-08-2025", "CohereLabs/c4ai-command-r7b-12-2024"],
    "cohere_command_r": ["CohereLabs/c4ai-command-r-plus-08-2024", "command-r:35b",
                         "cohere.command-r-plus-v1:0", "cohere/command-r-08-2024"],
    "harmony": ["openai/gpt-oss-20b", "gpt-oss:20b", "gpt-oss:120b-cloud", "openai.gpt-oss-120b-1:0",
                "unsloth/gpt-oss-20b-BF16", "groq/openai/gpt-oss-120b", "gpt-oss-20b-MXFP4-Q8"],
    "step3": ["stepfun-ai/step3", "stepfun-ai/Step-3-FP8"],
    "ernie45": ["baidu/ERNIE-4.5-21B-A3B-Thinking", "baidu/ernie-4.5-300b-a47b"],
    "minicpm5": ["openbmb/MiniCPM5-8B"],
    "dots": ["rednote-hilab/dots.llm1.inst"],
    "muse": ["meta/muse-glimmer"],
    "plamo": ["pfnet/plamo-3-nict-8b-base"],
    "iquest": ["IQuestLab/IQuest-Coder-V1-40B-Instruct"],
    "anthropic_blocks": [
        "anthropic/claude-3.7-sonnet:thinking", "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-opus-4-1", "claude-3-5-haiku@20241022",
        "vertex_ai/claude-sonnet-4-5", "claude-2.1",
    ],
    "gemini_parts": ["google/gemini-2.5-pro", "gemini-2.0-flash-001", "vertex_ai/gemini-3-pro"],
    "openai_chat_json": ["gpt-4o-mini", "openai/gpt-5.1", "azure/gpt-4-turbo", "o3-mini", "o4-mini",
                         "chatgpt-4o-latest", "gpt-3.5-turbo", "x-ai/grok-4"],
}  # fmt: skip

CASES = [(name, label) for label, names in NAMES.items() for name in names]


def test_the_table_is_large() -> None:
    assert len({name for name, _ in CASES}) >= 150


@pytest.mark.parametrize(("name", "label"), CASES)
def test_a_parser_is_pinned_by_the_name_of_a_model(name: str, label: str) -> None:
    last = name.rsplit("/", 1)[-1]
    for spelled in (name, name.upper(), last, f"org/{last}", last.replace("-", "_")):
        assert label in (ResponseParser.for_model(spelled).formats or ()), spelled


@pytest.mark.parametrize(
    "name",
    [
        "",
        "org/",
        "my-own-model",
        "llamaindex",
        "9",
        "granite-30b",
        "hermestic",
        "猫",
        "text-embedding",
    ],
)
def test_an_unknown_model_is_an_error_that_says_what_to_do(name: str) -> None:
    with pytest.raises(UnknownModelError, match=r"formats=\[\.\.\.\]"):
        ResponseParser.for_model(name)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Qwenn2.5-7B", "Qwen2.5"),
        ("meta-llama/Llama-3-8B", "Llama 3.1"),
        ("mixtrl-8x7b", "Mixtral"),
    ],
)
def test_near_names_are_told(name: str, near: str) -> None:
    with pytest.raises(UnknownModelError, match=near):
        ResponseParser.for_model(name)


@pytest.mark.parametrize("name", ["Qwen/QwQ-32B", "deepseek-r1:7b", "qwen3-4b-thinking-2507"])
def test_reasoning_is_open_where_the_template_opens_it(name: str) -> None:
    parser = ResponseParser.for_model(name)
    assert parser.reasoning_open
    for opener in ("", "<think>"):
        stream = parser.stream()
        events = stream.feed(opener + "They want the tides.") + stream.feed("</think>High at noon.")
        events += stream.finish()
        assert "text_retracted" not in [event.type for event in events]
        assert stream.reply.reasoning == "They want the tides."
        assert stream.reply.text == "High at noon."
    assert not ResponseParser.for_model(name, reasoning_open=False).reasoning_open
