output "role_arn" {
  description = "The function's role."
  value       = aws_cloudformation_stack.this.outputs["RoleArn"]
}

output "outputs" {
  description = "All outputs of the stack."
  value       = aws_cloudformation_stack.this.outputs
}
