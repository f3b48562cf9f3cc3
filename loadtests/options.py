"""Options of scenarios on Locust's command line and in its web form.

Each is declared once in a parser. Locust may load several scenarios at once (`-f loadtests/scenarios`). Options that
several of them have are then one option without a default, and each scenario uses its own default.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from locust import events

_declared: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The actions of each parser, by the option's name."""


class Option(NamedTuple):
    """One option of a scenario.

    Values have the default's type; an option that is false by default is a flag.
    """

    name: str
    default: str | int | float | bool
    help: str = ""


class Options:
    """The options of one scenario."""

    def __init__(self, *options: Option) -> None:
        self._options = options
        events.init_command_line_parser.add_listener(self.declare)

    def declare(self, parser: Any) -> None:
        """Add the options to a parser, except those that another scenario added."""
        declared = _declared.setdefault(parser, {})
        for option in self._options:
            action = declared.get(option.name)
            if action is None:
                declared[option.name] = _add(parser, option)
            elif action.default != option.default:
                action.default = None  # means the default of the scenario that runs

    def of(self, parsed: Any) -> Any:
        """Return the parsed options, with the scenario's defaults for missing values."""
        found = SimpleNamespace(**vars(parsed))
        for option in self._options:
            attribute = option.name.replace("-", "_")
            given = getattr(found, attribute)
            # the web form yields text if there is no default
            value = option.default if given is None or given == "" else type(option.default)(given)
            setattr(found, attribute, value)
        return found


def _add(parser: Any, option: Option) -> Any:
    flag = f"--{option.name}"
    if option.default is False:
        return parser.add_argument(flag, action="store_true", help=option.help)
    return parser.add_argument(flag, type=type(option.default), default=option.default, help=option.help)
