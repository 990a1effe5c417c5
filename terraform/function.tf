data "aws_partition" "this" {}
data "aws_region" "this" {}
data "aws_caller_identity" "this" {}

locals {
  # A worker's batch waits for a forge; the front door gives up long before.
  timeout = 30
}

resource "aws_cloudwatch_log_group" "function" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_lambda_function" "webhook" {
  function_name = var.name
  description   = "Hears the forge and starts runs"
  role          = aws_iam_role.function.arn
  runtime       = "provided.al2023"
  handler       = "bootstrap"
  architectures = [var.architecture]
  memory_size   = var.memory_mb
  timeout       = local.timeout

  filename          = var.package_file
  source_code_hash  = var.package_file == null ? null : filebase64sha256(var.package_file)
  s3_bucket         = try(var.package_s3.bucket, null)
  s3_key            = try(var.package_s3.key, null)
  s3_object_version = try(var.package_s3.version, null)

  reserved_concurrent_executions = var.reserved_concurrency

  environment {
    variables = merge(
      var.settings,
      { for variable, parameter in var.parameters : "${variable}_PARAMETER" => parameter },
      { for arn in compact([var.app_kms_key_arn]) : "GITHUB_APP_KMS_KEY" => arn },
      { PROCTOR_TABLE = aws_dynamodb_table.claims.name, PROCTOR_QUEUE_URL = aws_sqs_queue.deliveries.url },
    )
  }

  tags = var.tags

  # The log group is there first, or Lambda makes one that keeps everything for ever.
  depends_on = [aws_cloudwatch_log_group.function, aws_iam_role_policy.function]
}

# On Lambda nothing else ticks: lost runs are found, and failed deliveries repeated.
resource "aws_cloudwatch_event_rule" "tick" {
  name                = "${var.name}-tick"
  description         = "Looks after claims and failed deliveries"
  schedule_expression = "rate(5 minutes)"
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "tick" {
  rule = aws_cloudwatch_event_rule.tick.name
  arn  = aws_lambda_function.webhook.arn
}

resource "aws_lambda_permission" "tick" {
  statement_id  = "tick"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.webhook.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.tick.arn
}
