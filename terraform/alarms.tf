locals {
  queue    = { QueueName = aws_sqs_queue.deliveries.name }
  function = { FunctionName = aws_lambda_function.webhook.function_name }

  alarms = {
    dead = {
      text      = "Deliveries were given up: read the function's log, mend the cause, start a redrive"
      namespace = "AWS/SQS", metric = "ApproximateNumberOfMessagesVisible", statistic = "Maximum", above = 0, periods = 1
      of        = { QueueName = aws_sqs_queue.dead.name }
    }
    waiting = {
      text      = "A delivery has waited for 15 minutes: is the forge down, or its token refused?"
      namespace = "AWS/SQS", metric = "ApproximateAgeOfOldestMessage", statistic = "Maximum", above = 900, periods = 1, of = local.queue
    }
    errors = {
      text      = "The function fails: its log says what is not configured"
      namespace = "AWS/Lambda", metric = "Errors", statistic = "Sum", above = 0, periods = 1, of = local.function
    }
    throttles = {
      text      = "Deliveries are turned away: raise reserved_concurrency or the account's limit"
      namespace = "AWS/Lambda", metric = "Throttles", statistic = "Sum", above = 0, periods = 2, of = local.function
    }
    answers = {
      text      = "Deliveries are answered with 5xx: the sweep has them repeated, if an App is set up"
      namespace = "AWS/ApiGateway", metric = "5xx", statistic = "Sum", above = 0, periods = 2
      of        = { ApiId = aws_apigatewayv2_api.front.id }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = var.alarms ? local.alarms : {}

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.of
  statistic           = each.value.statistic
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  period              = 300
  evaluation_periods  = each.value.periods
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
