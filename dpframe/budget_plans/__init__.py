"""budget_plans"""
