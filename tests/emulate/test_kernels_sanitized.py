"""Every kernel under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer."""

from __future__ import annotations

import pytest

from emulate.emulated_cases import RECORDS, cases_of, needs_compiler
from emulate.sanitized import Job, run_apart

pytestmark = [needs_compiler, pytest.mark.deep]
CHECKS = (
    "emulate.eager_cases:check_all",
    "emulate.peel_cases:check_all",
    "emulate.ranked_cases:check_all",
    "emulate.triple_cases:check_some",
)

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


@for_every_algorithm
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_has_anything_to_report(algorithm: str, sanitizer: str) -> None:
    if report := run_apart(Job(sanitizer, tuple(cases_of(algorithm)))):
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_has_anything_to_report_of_trusses_and_triples(check: str, sanitizer: str) -> None:
    if report := run_apart(Job(sanitizer, checks=(check,))):
        pytest.fail(report, pytrace=False)
