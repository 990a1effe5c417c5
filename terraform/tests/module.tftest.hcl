# Nothing here meets AWS: the provider is mocked, and what it would make up gets the forms that others check.
mock_provider "aws" {
  source = "./tests/mock"
}

variables {
  package_file = "tests/package.txt"
  settings     = { GITHUB_APP_ID = 12 }
  parameters   = { PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret", GITHUB_APP_PRIVATE_KEY = "/proctor/app-key" }
}

run "secrets_go_by_reference" {
  assert {
    condition = tomap(aws_lambda_function.webhook.environment[0].variables) == tomap({
      GITHUB_APP_ID                    = "12"
      PROCTOR_WEBHOOK_SECRET_PARAMETER = "/proctor/webhook-secret"
      GITHUB_APP_PRIVATE_KEY_PARAMETER = "/proctor/app-key"
      PROCTOR_TABLE                    = "proctor-webhook"
      PROCTOR_QUEUE_URL                = aws_sqs_queue.deliveries.url
    })
    error_message = "the function's environment: ${jsonencode(aws_lambda_function.webhook.environment)}"
  }
}

run "the_function_is_what_the_program_expects" {
  assert {
    condition     = aws_lambda_function.webhook.runtime == "provided.al2023" && aws_lambda_function.webhook.handler == "bootstrap" && aws_lambda_function.webhook.architectures == tolist(["arm64"])
    error_message = "runtime, handler or architecture"
  }
  assert {
    condition     = aws_lambda_function.webhook.reserved_concurrent_executions == 20
    error_message = "concurrency is not reserved"
  }
  assert {
    condition     = aws_lambda_function.webhook.source_code_hash == filebase64sha256("tests/package.txt")
    error_message = "another zip would not be deployed"
  }
}

run "the_table_is_what_the_claims_expect" {
  assert {
    condition     = aws_dynamodb_table.claims.hash_key == "pk" && aws_dynamodb_table.claims.range_key == null && aws_dynamodb_table.claims.billing_mode == "PAY_PER_REQUEST"
    error_message = "key or billing of the table"
  }
  assert {
    condition     = { for a in aws_dynamodb_table.claims.attribute : a.name => a.type } == { pk = "S", due = "S", expires = "N" }
    error_message = "attributes of the table"
  }
  assert {
    condition     = [for i in aws_dynamodb_table.claims.global_secondary_index : [i.name, i.hash_key, i.range_key, i.projection_type]] == [["due", "due", "expires", "ALL"]]
    error_message = "index of the table"
  }
  assert {
    condition     = aws_dynamodb_table.claims.ttl[0].attribute_name == "ttl" && aws_dynamodb_table.claims.ttl[0].enabled
    error_message = "time to live of the table"
  }
}

run "what_cannot_be_worked_off_is_kept" {
  assert {
    condition     = jsondecode(aws_sqs_queue.deliveries.redrive_policy) == { deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = 50 }
    error_message = "redrive policy: ${aws_sqs_queue.deliveries.redrive_policy}"
  }
  assert {
    condition     = aws_sqs_queue.dead.message_retention_seconds > aws_sqs_queue.deliveries.message_retention_seconds
    error_message = "the dead-letter queue forgets sooner than the queue"
  }
  assert {
    condition     = aws_sqs_queue.deliveries.visibility_timeout_seconds >= 6 * aws_lambda_function.webhook.timeout
    error_message = "a message would come again while it is worked on"
  }
  assert {
    condition     = aws_sqs_queue.deliveries.message_retention_seconds > aws_sqs_queue.deliveries.visibility_timeout_seconds * var.max_receives
    error_message = "a message would expire before it reaches the dead-letter queue"
  }
  assert {
    condition     = aws_lambda_event_source_mapping.deliveries.function_response_types == toset(["ReportBatchItemFailures"]) && aws_lambda_event_source_mapping.deliveries.scaling_config[0].maximum_concurrency == 4
    error_message = "one bad message would send the whole batch again, or workers take all of the concurrency"
  }
  assert {
    condition     = alltrue([for p in values(aws_sqs_queue_policy.tls) : jsondecode(p.policy).Statement[0].Effect == "Deny" && jsondecode(p.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false"]) && length(aws_sqs_queue_policy.tls) == 2
    error_message = "queues take plain HTTP"
  }
  assert {
    condition     = aws_sqs_queue.deliveries.sqs_managed_sse_enabled && aws_sqs_queue.dead.sqs_managed_sse_enabled
    error_message = "queues are not encrypted at rest"
  }
}

# All that the role may do, word for word. Whoever adds an action adds it here too.
run "the_role_may_do_this_and_nothing_else" {
  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Sid => s.Action } == {
      Logs       = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Claims     = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
      DueClaims  = ["dynamodb:Query"]
      Deliveries = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:SendMessage"]
      Secrets    = ["ssm:GetParameters"]
    }
    error_message = "actions: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Sid => s.Resource } == {
      Logs       = ["${aws_cloudwatch_log_group.function.arn}:log-stream:*"]
      Claims     = [aws_dynamodb_table.claims.arn]
      DueClaims  = ["${aws_dynamodb_table.claims.arn}/index/due"]
      Deliveries = [aws_sqs_queue.deliveries.arn]
      Secrets = [
        "arn:aws:ssm:eu-central-1:123456789012:parameter/proctor/app-key",
        "arn:aws:ssm:eu-central-1:123456789012:parameter/proctor/webhook-secret",
      ]
    }
    error_message = "resources: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition     = alltrue([for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Effect == "Allow" && !contains(s.Resource, "*") && alltrue([for a in s.Action : !strcontains(a, "*")])])
    error_message = "a wildcard: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition     = jsondecode(aws_iam_role.function.assume_role_policy).Statement == [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]
    error_message = "others may take the role: ${aws_iam_role.function.assume_role_policy}"
  }
}

run "the_front_door_has_three_routes_and_a_limit" {
  assert {
    condition     = toset([for r in aws_apigatewayv2_route.this : r.route_key]) == toset(["POST /github", "POST /gitlab", "GET /healthz"])
    error_message = "routes"
  }
  assert {
    condition     = aws_apigatewayv2_stage.default.default_route_settings[0].throttling_rate_limit == 25 && aws_apigatewayv2_stage.default.default_route_settings[0].throttling_burst_limit == 100
    error_message = "throttling"
  }
  assert {
    condition     = aws_apigatewayv2_integration.function.payload_format_version == "2.0" && aws_apigatewayv2_integration.function.integration_uri == aws_lambda_function.webhook.invoke_arn
    error_message = "integration"
  }
  assert {
    condition     = aws_lambda_permission.front.source_arn == "${aws_apigatewayv2_api.front.execution_arn}/*/*" && aws_lambda_permission.tick.source_arn == aws_cloudwatch_event_rule.tick.arn
    error_message = "others may call the function"
  }
  assert {
    condition     = output.github_url == "${aws_apigatewayv2_api.front.api_endpoint}/github" && output.gitlab_url == "${aws_apigatewayv2_api.front.api_endpoint}/gitlab"
    error_message = "addresses"
  }
}

run "it_ticks_logs_end_and_alarms_are_set" {
  assert {
    condition     = aws_cloudwatch_event_rule.tick.schedule_expression == "rate(5 minutes)" && aws_cloudwatch_event_target.tick.arn == aws_lambda_function.webhook.arn
    error_message = "schedule"
  }
  assert {
    condition     = aws_cloudwatch_log_group.function.retention_in_days == 30 && aws_cloudwatch_log_group.front.retention_in_days == 30 && aws_cloudwatch_log_group.function.name == "/aws/lambda/proctor-webhook"
    error_message = "logs"
  }
  assert {
    condition     = keys(aws_cloudwatch_metric_alarm.this) == ["answers", "dead", "errors", "throttles", "waiting"]
    error_message = "alarms"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.this["dead"].dimensions == tomap({ QueueName = "proctor-webhook-dead" })
    error_message = "the dead-letter queue is not watched"
  }
}

run "a_key_of_ones_own_for_everything_at_rest" {
  variables {
    kms_key_arn              = "arn:aws:kms:eu-central-1:123456789012:key/one"
    parameter_kms_key_arns   = ["arn:aws:kms:eu-central-1:123456789012:key/two"]
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
    tags                     = { team = "tools" }
  }
  assert {
    condition = alltrue([for k in [
      aws_dynamodb_table.claims.server_side_encryption[0].kms_key_arn, aws_sqs_queue.deliveries.kms_master_key_id, aws_sqs_queue.dead.kms_master_key_id,
      aws_cloudwatch_log_group.function.kms_key_id, aws_cloudwatch_log_group.front.kms_key_id,
    ] : k == var.kms_key_arn])
    error_message = "something is encrypted with another key"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : [s.Sid, s.Resource[0], s.Condition.StringEquals["kms:ViaService"]] if try(s.Condition, null) != null] == [
      ["TableAndQueueKey", "arn:aws:kms:eu-central-1:123456789012:key/one", ["dynamodb.eu-central-1.amazonaws.com", "sqs.eu-central-1.amazonaws.com"]],
      ["SecretsKey", "arn:aws:kms:eu-central-1:123456789012:key/two", ["ssm.eu-central-1.amazonaws.com"]],
    ]
    error_message = "use of the keys: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition     = aws_iam_role.function.permissions_boundary == var.permissions_boundary_arn
    error_message = "permissions boundary"
  }
  assert {
    condition = alltrue([for t in concat(
      [for a in aws_cloudwatch_metric_alarm.this : a.tags],
      [
        aws_lambda_function.webhook.tags, aws_iam_role.function.tags, aws_dynamodb_table.claims.tags, aws_sqs_queue.deliveries.tags, aws_sqs_queue.dead.tags,
        aws_cloudwatch_log_group.function.tags, aws_cloudwatch_log_group.front.tags, aws_cloudwatch_event_rule.tick.tags,
        aws_apigatewayv2_api.front.tags, aws_apigatewayv2_stage.default.tags, aws_lambda_event_source_mapping.deliveries.tags,
      ],
    ) : t == tomap({ team = "tools" })])
    error_message = "something has no tags"
  }
}

run "no_alarms_where_none_are_wanted_a_zip_in_s3_and_the_exchange" {
  variables {
    alarms       = false
    package_file = null
    settings     = { GITHUB_APP_ID = 12, PROCTOR_TOKEN_AUDIENCE = "https://hook.example/token" }
    package_s3   = { bucket = "b", key = "k", version = "v" }
  }
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.this) == 0
    error_message = "alarms"
  }
  assert {
    condition     = aws_lambda_function.webhook.filename == null && aws_lambda_function.webhook.s3_object_version == "v"
    error_message = "package"
  }
  assert {
    condition     = contains([for r in aws_apigatewayv2_route.this : r.route_key], "POST /token")
    error_message = "the exchange has no route"
  }
}

run "an_app_whose_key_never_leaves_kms" {
  variables {
    app_kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/app"
    parameters      = { PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret" }
  }
  assert {
    condition     = aws_lambda_function.webhook.environment[0].variables["GITHUB_APP_KMS_KEY"] == var.app_kms_key_arn
    error_message = "the function does not know the key"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : [s.Sid, s.Action, s.Resource, s.Condition.StringEquals["kms:SigningAlgorithm"]] if s.Sid == "SignAsTheApp"] == [
      ["SignAsTheApp", ["kms:Sign"], ["arn:aws:kms:eu-central-1:123456789012:key/app"], ["RSASSA_PKCS1_V1_5_SHA_256"]],
    ]
    error_message = "use of the key: ${aws_iam_role_policy.function.policy}"
  }
}
