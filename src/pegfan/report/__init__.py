"""The report of a training run: one HTML file that opens offline, on a phone, on paper, in light and dark."""

from pegfan.report.page import write_comparison, write_report

__all__ = ["write_comparison", "write_report"]
