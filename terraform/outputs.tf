output "github_url" {
  description = "Webhook URL for the App or the repository at GitHub."
  value       = "${aws_apigatewayv2_api.front.api_endpoint}/github"
}

output "gitlab_url" {
  description = "Webhook URL for the project or group at GitLab."
  value       = "${aws_apigatewayv2_api.front.api_endpoint}/gitlab"
}

output "function_name" {
  description = "The function, for its log and a look at its configuration."
  value       = aws_lambda_function.webhook.function_name
}

output "role_arn" {
  description = "The function's role, for a key's policy for example."
  value       = aws_iam_role.function.arn
}

output "dead_letter_queue_url" {
  description = "Where deliveries lie that were given up."
  value       = aws_sqs_queue.dead.url
}
