"""How long the jobs of a run take: what the last run of a scale took, and what a first run may expect."""

import json

import yaml

from nblib import paths


class Times:
    """Seconds by job, kept in `runs/<scale>/times.json`; for a first run the seconds by rule of `config/times/<scale>.yaml`.

    Attributes:
        file: where they are kept.
        last: the last run's seconds, "rule/name" → seconds; `name` is what a rule was run for, or "".
        first: what a first run may expect, rule → seconds.
    """

    def __init__(self, scale: str) -> None:
        self.file = paths.resolve(f"runs/{scale}/times.json")
        try:
            took = json.loads(self.file.read_text(encoding="utf-8"))
            self.last: dict[str, float] = {str(job): float(seconds) for job, seconds in took.items()}
        except (
            OSError,
            ValueError,
            TypeError,
            AttributeError,
        ):  # absent or damaged: an estimate must not end the study
            self.last = {}
        shipped = paths.CONFIG / "times" / f"{scale}.yaml"
        self.first: dict[str, float] = yaml.safe_load(shipped.read_text(encoding="utf-8")) if shipped.is_file() else {}

    def expected(self, rule: str, name: str | None = None) -> float | None:
        """The seconds that a job will probably take; None where nothing is known of its rule.

        Args:
            name: what the rule is run for; None asks for the mean of the rule's jobs.
        """
        if name is not None and f"{rule}/{name}" in self.last:
            return self.last[f"{rule}/{name}"]
        known = [seconds for job, seconds in self.last.items() if job.partition("/")[0] == rule]
        return sum(known) / len(known) if known else self.first.get(rule)

    def took(self, rule: str, name: str, seconds: float) -> None:
        """Keep what a job took."""
        self.last[f"{rule}/{name}"] = round(seconds, 1)
        with paths.write_atomically(self.file) as draft:
            draft.write_text(json.dumps(self.last, indent=1, sort_keys=True) + "\n", encoding="utf-8")
