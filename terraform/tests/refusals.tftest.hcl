mock_provider "aws" {
  source = "./tests/mock"
}

variables {
  package_file = "tests/package.txt"
  parameters   = { PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret" }
}

run "the_control_is_accepted" {
  command = plan
}

run "a_secret_among_the_settings" {
  command = plan
  variables {
    settings = { GITHUB_TOKEN = "not-a-token" }
  }
  expect_failures = [var.settings]
}

run "an_unknown_setting" {
  command = plan
  variables {
    settings = { PROCTOR_REPO = "octo/*" }
  }
  expect_failures = [var.settings]
}

run "what_the_module_sets_itself" {
  command = plan
  variables {
    settings = { PROCTOR_TABLE = "another" }
  }
  expect_failures = [var.settings]
}

run "no_webhook_secret" {
  command = plan
  variables {
    parameters = { GITHUB_APP_PRIVATE_KEY = "/proctor/app-key" }
  }
  expect_failures = [var.parameters]
}

run "a_parameter_of_no_secret" {
  command = plan
  variables {
    parameters = { PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret", PROCTOR_LABEL = "/proctor/label" }
  }
  expect_failures = [var.parameters]
}

run "a_value_where_a_name_belongs" {
  command = plan
  variables {
    parameters = { PROCTOR_WEBHOOK_SECRET = "0123456789abcdef" }
  }
  expect_failures = [var.parameters]
}

run "a_wildcard_in_a_name" {
  command = plan
  variables {
    parameters = { PROCTOR_WEBHOOK_SECRET = "/proctor/*" }
  }
  expect_failures = [var.parameters]
}

run "no_package" {
  command = plan
  variables {
    package_file = null
  }
  expect_failures = [var.package_s3]
}

run "two_packages" {
  command = plan
  variables {
    package_s3 = { bucket = "b", key = "k", version = "v" }
  }
  expect_failures = [var.package_s3]
}

run "workers_that_take_everything" {
  command = plan
  variables {
    reserved_concurrency = 5
    worker_concurrency   = 5
  }
  expect_failures = [var.worker_concurrency]
}

run "no_concurrency_at_all" {
  command = plan
  variables {
    reserved_concurrency = 0
    worker_concurrency   = 2
  }
  expect_failures = [var.reserved_concurrency]
}

run "a_name_that_is_none" {
  command = plan
  variables {
    name = "Proctor webhook"
  }
  expect_failures = [var.name]
}

run "an_unknown_architecture" {
  command = plan
  variables {
    architecture = "riscv64"
  }
  expect_failures = [var.architecture]
}

run "an_alias_for_the_apps_key" {
  command = plan
  variables {
    app_kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:alias/app"
  }
  expect_failures = [var.app_kms_key_arn]
}

run "the_apps_key_twice" {
  command = plan
  variables {
    app_kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/app"
    parameters      = { PROCTOR_WEBHOOK_SECRET = "/proctor/webhook-secret", GITHUB_APP_PRIVATE_KEY = "/proctor/app-key" }
  }
  expect_failures = [var.app_kms_key_arn]
}
