# GitHub with an App. Before: make bootstrap.zip and the two parameters (docs/webhook-aws.md).
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

variable "package_file" {
  description = "Path of bootstrap.zip."
  type        = string
  default     = "bootstrap.zip"
}

module "webhook" {
  source = "../.."

  package_file = var.package_file
  settings     = { GITHUB_APP_ID = var.app_id }
  parameters = {
    PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret"
    GITHUB_APP_PRIVATE_KEY = "/proctor/app-key"
  }
}

output "webhook_url" {
  description = "Enter it at the App."
  value       = module.webhook.github_url
}
