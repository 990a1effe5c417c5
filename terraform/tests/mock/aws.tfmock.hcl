mock_data "aws_partition" {
  defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
}
mock_data "aws_region" {
  defaults = { name = "eu-central-1" }
}
mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}
mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/proctor-webhook" }
}
mock_resource "aws_lambda_function" {
  defaults = {
    arn        = "arn:aws:lambda:eu-central-1:123456789012:function:proctor-webhook"
    invoke_arn = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-central-1:123456789012:function:proctor-webhook/invocations"
  }
}
mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/proctor-webhook" }
}
mock_resource "aws_sqs_queue" {
  defaults = {
    arn = "arn:aws:sqs:eu-central-1:123456789012:proctor-webhook"
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/proctor-webhook"
  }
}
mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:proctor-webhook" }
}
mock_resource "aws_cloudwatch_event_rule" {
  defaults = { arn = "arn:aws:events:eu-central-1:123456789012:rule/proctor-webhook-tick" }
}
mock_resource "aws_apigatewayv2_api" {
  defaults = {
    api_endpoint  = "https://a1b2c3.execute-api.eu-central-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-central-1:123456789012:a1b2c3"
  }
}
mock_resource "aws_kms_key" {
  defaults = { arn = "arn:aws:kms:eu-central-1:123456789012:key/one" }
}
mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-central-1:123456789012:proctor-webhook-alarms" }
}
