terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first that has access entries.
      version = ">= 5.33"
    }
  }
}
