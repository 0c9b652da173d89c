# SPDX-License-Identifier: Apache-2.0
"""Chat templates: as transformers renders them, in a sandbox."""

from __future__ import annotations

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

import pumice
from pumice.llm.chat import render

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = [
    "{{ bos_token }}{% for m in messages %}\n  {% if m.role == 'user' %}\n[{{ m.content | trim }}]\n{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}>{% endif %}",
    "{% for m in messages %}{% if loop.index0 > 5 %}{% break %}{% endif %}{{ m | tojson }}{% endfor %}{{ eos_token }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_as_transformers_renders_it(template) -> None:
    want, _ = render_jinja_template([MESSAGES], chat_template=template, add_generation_prompt=True, **SPECIAL)
    assert render(template, MESSAGES, SPECIAL) == want[0]


@pytest.mark.parametrize(
    ("template", "match"),
    [
        ("", "no chat template"),
        ("{{ raise_exception('no system message') }}", "no system message"),
        ("{% for %}", "the chat template"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ messages[7].content }}", "the chat template"),
    ],
)
def test_a_template_that_cannot_be_used(template, match) -> None:
    with pytest.raises(pumice.InvalidInputError, match=match):
        render(template, MESSAGES, SPECIAL)
