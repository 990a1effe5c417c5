# GitHub and GitLab, a key of one's own, alarms by mail, a secret that is being rotated, a permissions boundary.
terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

variable "app_id" {
  description = "Id of the GitHub App."
  type        = number
}

variable "package_s3" {
  description = "Where bootstrap.zip lies."
  type        = object({ bucket = string, key = string, version = string })
}

variable "alarm_mail" {
  description = "Who is told when deliveries are lost."
  type        = string
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary that roles of this account must have."
  type        = string
  default     = null
}

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  name = "proctor-webhook"
  here = "${data.aws_partition.this.partition}:logs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}"
}

# Table, queues, logs and parameters under one key. Who may use it otherwise, the account's own policies say.
resource "aws_kms_key" "webhook" {
  description         = "Proctor's webhook"
  enable_key_rotation = true

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Account"
        Effect    = "Allow"
        Principal = { AWS = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Principal = { Service = "logs.${data.aws_region.this.name}.amazonaws.com" }
        Action    = ["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
        Resource  = "*"
        Condition = { ArnEquals = { "kms:EncryptionContext:aws:logs:arn" = [for g in ["lambda", "apigateway"] : "arn:${local.here}:log-group:/aws/${g}/${local.name}"] } }
      },
    ]
  })
}

resource "aws_sns_topic" "alarms" {
  name = "${local.name}-alarms"
}

resource "aws_sns_topic_subscription" "mail" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_mail
}

module "webhook" {
  source = "../.."

  name         = local.name
  package_s3   = var.package_s3
  architecture = "arm64"

  settings = {
    GITHUB_APP_ID = var.app_id
    PROCTOR_REPOS = "octo/*,group/shop"
    PROCTOR_ROLES = "admin,maintain"
  }
  parameters = {
    PROCTOR_WEBHOOK_SECRET          = "/proctor/webhook-secret"
    PROCTOR_WEBHOOK_SECRET_PREVIOUS = "/proctor/webhook-secret-previous"
    GITHUB_APP_PRIVATE_KEY          = "/proctor/app-key"
    PROCTOR_GITLAB_WEBHOOK_TOKEN    = "/proctor/gitlab-webhook-token"
    GITLAB_TOKEN                    = "/proctor/gitlab-token"
  }

  kms_key_arn            = aws_kms_key.webhook.arn
  parameter_kms_key_arns = [aws_kms_key.webhook.arn]

  reserved_concurrency     = 40
  worker_concurrency       = 8
  log_retention_days       = 90
  alarm_topic_arns         = [aws_sns_topic.alarms.arn]
  permissions_boundary_arn = var.permissions_boundary_arn
  tags                     = { service = "proctor" }
}

output "github_url" {
  description = "Enter it at the App."
  value       = module.webhook.github_url
}

output "gitlab_url" {
  description = "Enter it at the project or group."
  value       = module.webhook.gitlab_url
}
