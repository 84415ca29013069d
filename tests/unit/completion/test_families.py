"""Families of code models (R-258 … R-261), as a table of cases."""

from __future__ import annotations

import pytest

from codecompanion.completion.families import families, family_named, family_of, stops_of, without_tokens
from codecompanion.completion.prompt import build_prompt
from codecompanion.errors import ConfigError

QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>")
STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>")
CODELLAMA = ("<PRE>", "<SUF>", "<MID>", "<EOT>")
DEEPSEEK = ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<｜end▁of▁sentence｜>")
ASCII = ("<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>", "<|end_of_text|>")


@pytest.mark.parametrize(
    ("model", "name", "tokens"),
    [
        ("qwen2.5-coder", "qwen", QWEN),
        ("Qwen/Qwen3-Coder-30B-A3B", "qwen", QWEN),
        ("deepseek-coder:6.7b-base", "deepseek", DEEPSEEK),
        ("DeepSeek-Coder-V2-Lite", "deepseek", DEEPSEEK),
        ("codellama:7b-code", "codellama", CODELLAMA),
        ("starcoder2:3b", "starcoder", STARCODER),
        ("codestral-latest", "starcoder", STARCODER),
        # The order of the words decides.
        ("deepseek-r1-distill-qwen-7b", "deepseek", DEEPSEEK),
        ("codellama-starcoder-merge", "codellama", CODELLAMA),
        ("starcoder-qwen", "starcoder", STARCODER),
        ("gpt-5.1", "plain", ("", "", "", "")),
        ("", "plain", ("", "", "", "")),
    ],
)
def test_a_models_name_determines_its_family(model, name, tokens):
    """R-258, R-261: the first substring in the order of the table decides; case does not matter."""
    family = family_of(model)
    assert family.name == name
    assert (family.prefix, family.suffix, family.middle, family.eot) == tokens


def test_both_spellings_of_deepseek_are_available_by_name():
    """R-260: the spellings are the published tokens and those in the document's source."""
    ascii_family = family_named("deepseek-ascii")
    assert (ascii_family.prefix, ascii_family.suffix, ascii_family.middle, ascii_family.eot) == ASCII
    published = family_named("deepseek")
    assert (published.prefix, published.suffix, published.middle, published.eot) == DEEPSEEK


@pytest.mark.parametrize(("name", "family"), [("codestral", "starcoder"), ("CodeLlama", "codellama"), ("qwen", "qwen")])
def test_a_family_has_the_documents_names(name, family):
    """R-258: StarCoder/Codestral is one family."""
    assert family_named(name).name == family


def test_an_unknown_family_is_answered_with_the_known_ones():
    with pytest.raises(
        ConfigError, match=r"no family 'lama'.*deepseek, deepseek-ascii, codellama, starcoder, codestral, qwen"
    ):
        family_named("lama")


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_a_prompt_is_the_texts_between_their_tokens(family):
    """R-259: the prompt is P + imports + prefix + S + suffix + M.

    The reply stops at eot, a file separator or two empty lines.
    """
    made = build_prompt(family, "import a\n", "x = a.", "\n")
    assert made.prompt == f"{family.prefix}import a\nx = a.{family.suffix}\n{family.middle}"
    assert made.stop == (family.eot, "<file_sep>", "\n\n\n")


def test_a_model_that_cannot_fill_in_only_continues_the_text():
    """R-259: the prompt is imports and prefix; the reply stops at an empty line or a code fence."""
    made = build_prompt(family_of("gpt-5.1"), "import a\n", "x = a.", "later")
    assert made.prompt == "import a\nx = a."
    assert made.stop == stops_of(family_of("mistral")) == ("\n\n", "```")


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_a_token_in_the_file_does_not_reach_the_tokenizer(family):
    """R-260: each of the family's own tokens is in the prompt once; the texts keep their length."""
    text = "a = '" + "'; b = '".join((*family.tokens, family.prefix * 2)) + "'\n"
    made = build_prompt(family, text, text, text)
    own = [token for token in (family.prefix, family.suffix, family.middle) if token]
    assert [made.prompt.count(token) for token in own] == [1, 1, 1]
    assert not any(token in part for token in family.tokens for part in (made.imports, made.prefix, made.suffix))
    assert len(made.prefix) == len(made.suffix) == len(text)
    assert without_tokens(made.prefix, family) == made.prefix


def test_tokens_of_other_families_are_unchanged():
    assert without_tokens("<PRE>", family_of("qwen")) == "<PRE>"
