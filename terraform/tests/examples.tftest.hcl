mock_provider "aws" {
  source = "./tests/mock"
}

run "minimal" {
  module {
    source = "./examples/minimal"
  }
  variables {
    app_id       = 12
    package_file = "tests/package.txt"
  }
  assert {
    condition     = endswith(output.webhook_url, "/github")
    error_message = "the address: ${output.webhook_url}"
  }
}

run "complete" {
  module {
    source = "./examples/complete"
  }
  variables {
    app_id                   = 12
    package_s3               = { bucket = "releases", key = "bootstrap.zip", version = "1" }
    alarm_mail               = "ops@example.com"
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
  }
  assert {
    condition     = jsondecode(aws_kms_key.webhook.policy).Statement[1].Condition.ArnEquals["kms:EncryptionContext:aws:logs:arn"][0] == "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/proctor-webhook"
    error_message = "logs could not be written with the key: ${aws_kms_key.webhook.policy}"
  }
  assert {
    condition     = endswith(output.github_url, "/github") && endswith(output.gitlab_url, "/gitlab")
    error_message = "the addresses"
  }
}
