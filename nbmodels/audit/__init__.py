"""Audits: rows drawn to be checked, and what the checked rows say, whatever model is right."""

from nbmodels.audit.plan import AuditPlan
from nbmodels.audit.result import AuditResult

__all__ = ["AuditPlan", "AuditResult"]
