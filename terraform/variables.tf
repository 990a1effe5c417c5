variable "name" {
  description = "Name of everything that is made, and the beginning of longer names."
  type        = string
  default     = "proctor-webhook"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,39}$", var.name))
    error_message = "name: 1 to 40 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "package_file" {
  description = "Path of the zip with the program `bootstrap` in it, on the machine that runs Terraform. Or set package_s3."
  type        = string
  default     = null
}

variable "package_s3" {
  description = "The zip in S3, instead of package_file. The object's version is what tells one release from the next."
  type        = object({ bucket = string, key = string, version = string })
  default     = null

  validation {
    condition     = (var.package_s3 == null) != (var.package_file == null)
    error_message = "Set one of package_file and package_s3."
  }
}

variable "architecture" {
  description = "What the program was built for: arm64 or x86_64."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture: arm64 or x86_64."
  }
}

variable "parameters" {
  description = <<-E
    Secrets by reference: the webhook's variable, and the name of the SSM parameter (SecureString) that holds its value. The
    values never come near Terraform or its state. At least PROCTOR_WEBHOOK_SECRET (GitHub) or one of GitLab's two.
  E
  type        = map(string)

  validation {
    condition     = length(setsubtract(keys(var.parameters), local.secrets)) == 0
    error_message = "parameters: unknown ${join(", ", setsubtract(keys(var.parameters), local.secrets))}. Known are ${join(", ", local.secrets)}."
  }
  validation {
    condition     = length(setintersection(keys(var.parameters), ["PROCTOR_WEBHOOK_SECRET", "PROCTOR_GITLAB_WEBHOOK_TOKEN", "PROCTOR_GITLAB_SIGNING_TOKEN"])) > 0
    error_message = "parameters: without a webhook secret nothing can be verified. Name the parameter of PROCTOR_WEBHOOK_SECRET, PROCTOR_GITLAB_WEBHOOK_TOKEN or PROCTOR_GITLAB_SIGNING_TOKEN."
  }
  validation {
    condition     = alltrue([for p in values(var.parameters) : can(regex("^/[A-Za-z0-9_./-]+$", p))])
    error_message = "parameters: give each parameter's full name, /proctor/webhook-secret for example: not its value, nor an ARN."
  }
  validation {
    condition     = length(var.parameters) <= 10
    error_message = "parameters: ten at the most; the webhook reads them in one call."
  }
}

variable "settings" {
  description = "The webhook's other variables, for example GITHUB_APP_ID and PROCTOR_REPOS; `webhook -h` lists them. No secrets: they would lie in Terraform's state."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.settings), local.settings)) == 0
    error_message = "settings: ${join(", ", setsubtract(keys(var.settings), local.settings))} cannot be set here. Known are ${join(", ", local.settings)}; secrets go to `parameters`, by reference."
  }
}

variable "kms_key_arn" {
  description = "Customer-managed key for table, queues and logs; null leaves them to keys of AWS's. Its policy has to let CloudWatch Logs use it: see examples/complete."
  type        = string
  default     = null
}

variable "parameter_kms_key_arns" {
  description = "Customer-managed keys that the SSM parameters are encrypted with; none for AWS's own key."
  type        = list(string)
  default     = []
}

variable "app_kms_key_arn" {
  description = "RSA_2048 key of KMS for SIGN_VERIFY that holds the GitHub App's private key, in place of the parameter GITHUB_APP_PRIVATE_KEY; null for that one."
  type        = string
  default     = null

  validation {
    condition     = var.app_kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.app_kms_key_arn))
    error_message = "app_kms_key_arn is the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID. An alias cannot stand in a role's policy."
  }
  validation {
    condition     = var.app_kms_key_arn == null || !contains(keys(var.parameters), "GITHUB_APP_PRIVATE_KEY")
    error_message = "app_kms_key_arn and the parameter GITHUB_APP_PRIVATE_KEY are both given. Leave the parameter out, and destroy that copy of the key."
  }
}

variable "memory_mb" {
  description = "Memory of the function. Its share of a processor grows with it."
  type        = number
  default     = 256
}

variable "reserved_concurrency" {
  description = "The most that run at once, requests and workers together; it also keeps that much of the account's limit for them. -1 reserves none, which a young account with a limit of 10 needs."
  type        = number
  default     = 20

  validation {
    condition     = var.reserved_concurrency == -1 || var.reserved_concurrency >= 5
    error_message = "reserved_concurrency: 5 or more, or -1."
  }
}

variable "worker_concurrency" {
  description = "How many of them may be workers on the queue. The rest is left for answering deliveries."
  type        = number
  default     = 4

  validation {
    condition     = var.worker_concurrency >= 2 && (var.reserved_concurrency == -1 || var.worker_concurrency < var.reserved_concurrency)
    error_message = "worker_concurrency: 2 or more, and fewer than reserved_concurrency."
  }
}

variable "requests_per_second" {
  description = "What the front door lets through, steadily and in a burst of four times as many; beyond that it answers 429 and the sweep has the delivery repeated."
  type        = number
  default     = 25
}

variable "max_receives" {
  description = "How often a delivery is tried, three minutes apart, before it goes to the dead-letter queue."
  type        = number
  default     = 50
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}

variable "alarms" {
  description = "Whether the five alarms are made."
  type        = bool
  default     = true
}

variable "alarm_topic_arns" {
  description = "SNS topics that are told when an alarm goes off and when it ends."
  type        = list(string)
  default     = []
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the function's role, where the account asks for one."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that can have some."
  type        = map(string)
  default     = {}
}
