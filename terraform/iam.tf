locals {
  parameter_arns = [
    for p in values(var.parameters) :
    "arn:${data.aws_partition.this.partition}:ssm:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:parameter${p}"
  ]
  via = { for s in ["dynamodb", "sqs", "ssm"] : s => "${s}.${data.aws_region.this.name}.${data.aws_partition.this.dns_suffix}" }

  statements = concat(
    [
      {
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.function.arn}:log-stream:*"]
      },
      {
        # A transaction is allowed by what it consists of; there is no action of its name.
        Sid      = "Claims"
        Effect   = "Allow"
        Action   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
        Resource = [aws_dynamodb_table.claims.arn]
      },
      {
        Sid      = "DueClaims"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = ["${aws_dynamodb_table.claims.arn}/index/due"]
      },
      {
        Sid      = "Deliveries"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:SendMessage"]
        Resource = [aws_sqs_queue.deliveries.arn]
      },
      {
        Sid      = "Secrets"
        Effect   = "Allow"
        Action   = ["ssm:GetParameters"]
        Resource = local.parameter_arns
      },
    ],
    [
      for arn in compact([var.kms_key_arn]) : {
        Sid       = "TableAndQueueKey"
        Effect    = "Allow"
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
        Resource  = [arn]
        Condition = { StringEquals = { "kms:ViaService" = [local.via.dynamodb, local.via.sqs] } }
      }
    ],
    [
      for arns in [var.parameter_kms_key_arns] : {
        Sid       = "SecretsKey"
        Effect    = "Allow"
        Action    = ["kms:Decrypt"]
        Resource  = arns
        Condition = { StringEquals = { "kms:ViaService" = [local.via.ssm] } }
      } if length(arns) > 0
    ],
    [
      for arn in compact([var.app_kms_key_arn]) : {
        Sid       = "SignAsTheApp"
        Effect    = "Allow"
        Action    = ["kms:Sign"]
        Resource  = [arn]
        Condition = { StringEquals = { "kms:SigningAlgorithm" = ["RSASSA_PKCS1_V1_5_SHA_256"] } }
      }
    ],
  )
}

resource "aws_iam_role" "function" {
  name                 = var.name
  description          = "What the webhook may do"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy" "function" {
  name   = "webhook"
  role   = aws_iam_role.function.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.statements })
}
