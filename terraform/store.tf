# internal/webhook/aws/item.go says what is in it.
resource "aws_dynamodb_table" "claims" {
  name         = var.name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"

  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "due"
    type = "S"
  }
  attribute {
    name = "expires"
    type = "N"
  }

  global_secondary_index {
    name            = "due"
    hash_key        = "due"
    range_key       = "expires"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  dynamic "server_side_encryption" {
    for_each = compact([var.kms_key_arn])
    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  tags = var.tags
}
