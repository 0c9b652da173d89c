# SPDX-License-Identifier: Apache-2.0
"""A conversation -> the text of a chat template. The template comes from a file, so it runs in Jinja's sandbox."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pumice.errors import Error, InvalidInputError


def render(template: str, messages: Sequence[Mapping[str, str]], special: Mapping[str, str]) -> str:
    """The conversation, and the beginning of the answer. special: bos_token and others that templates name.

    Raises InvalidInputError for a model without a template, a message without role or content, and what the template
    itself refuses.
    """
    if not template:
        raise _bad("the model has no chat template: use generate")
    if not messages:
        raise _bad("the conversation is empty")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or "content" not in message:
            raise _bad(f"message {index} needs a role and a content, got {message!r}")
    try:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ModuleNotFoundError:
        raise Error("chat templates need jinja2: pip install 'pumice[llm]'", code="MissingPackage") from None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages], add_generation_prompt=True, **special
        )
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise _bad(f"the chat template: {error}") from None


def _refuse(message: str) -> Any:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)


def _bad(text: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="input", path="messages")
