# SPDX-License-Identifier: BSD-3-Clause
"""Tables and figures of doc/evaluation.md from bench/results, for bench/evaluate and bench/points."""
