"""A drill on a real account: EC2 interrupts one spot node, and the receipt shows what Spillway made of it."""
