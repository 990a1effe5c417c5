locals {
  exchange = contains(keys(var.settings), "PROCTOR_TOKEN_AUDIENCE")
  routes   = toset(concat(["POST /github", "POST /gitlab", "GET /healthz"], local.exchange ? ["POST /token"] : []))
}

resource "aws_apigatewayv2_api" "front" {
  name          = var.name
  description   = "Where the forge delivers"
  protocol_type = "HTTP"
  tags          = var.tags
}

resource "aws_apigatewayv2_integration" "function" {
  api_id                 = aws_apigatewayv2_api.front.id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.webhook.invoke_arn
  payload_format_version = "2.0"
  # GitHub gives up after ten seconds.
  timeout_milliseconds = 10000
}

resource "aws_apigatewayv2_route" "this" {
  for_each  = local.routes
  api_id    = aws_apigatewayv2_api.front.id
  route_key = each.value
  target    = "integrations/${aws_apigatewayv2_integration.function.id}"
}

resource "aws_cloudwatch_log_group" "front" {
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.front.id
  name        = "$default"
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = var.requests_per_second
    throttling_burst_limit = 4 * var.requests_per_second
  }

  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.front.arn
    # No header and no body.
    format = jsonencode({
      time   = "$context.requestTime", request = "$context.requestId", route = "$context.routeKey", status = "$context.status",
      source = "$context.identity.sourceIp", ms = "$context.responseLatency", error = "$context.integrationErrorMessage"
    })
  }
}

resource "aws_lambda_permission" "front" {
  statement_id  = "front"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.webhook.function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.front.execution_arn}/*/*"
}
