resource "aws_sqs_queue" "dead" {
  name                      = "${var.name}-dead"
  message_retention_seconds = 14 * 24 * 3600
  sqs_managed_sse_enabled   = var.kms_key_arn == null ? true : null
  kms_master_key_id         = var.kms_key_arn
  tags                      = var.tags
}

resource "aws_sqs_queue" "deliveries" {
  name                      = var.name
  message_retention_seconds = 4 * 24 * 3600
  # A message that failed comes again after this long; it has to be well above the function's own time.
  visibility_timeout_seconds = 6 * local.timeout
  receive_wait_time_seconds  = 20
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  tags                       = var.tags

  redrive_policy = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = var.max_receives })
}

resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url            = aws_sqs_queue.dead.id
  redrive_allow_policy = jsonencode({ redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.deliveries.arn] })
}

resource "aws_sqs_queue_policy" "tls" {
  for_each  = { deliveries = aws_sqs_queue.deliveries, dead = aws_sqs_queue.dead }
  queue_url = each.value.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyTLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

resource "aws_lambda_event_source_mapping" "deliveries" {
  event_source_arn        = aws_sqs_queue.deliveries.arn
  function_name           = aws_lambda_function.webhook.arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = var.tags

  scaling_config {
    maximum_concurrency = var.worker_concurrency
  }
}
