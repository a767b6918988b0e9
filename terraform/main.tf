# Spillway of a release: the stack, and what lets it into clusters and groups. docs/install-variants.md, Terraform

locals {
  # Without `release` this module is a folder of the unpacked release, and uploads its files. With it, the bucket has them.
  is_beside = var.release == ""
  folder    = "${path.module}/.."
  packages  = local.is_beside ? fileset(local.folder, "packages/${var.architecture}/*.zip") : toset([])
  template  = "template-plain${var.architecture == "arm64" ? "" : "-${var.architecture}"}.json"
  # Other code or another template has another place, so that the stack is updated, and rolled back, to what is there.
  uploaded = "${var.name}/${sha256(join("", [for file in local.packages : filesha256("${local.folder}/${file}")]))}/"
  prefix   = local.is_beside ? local.uploaded : "spillway/${var.release}/"

  # The first of the hooks that the stack completes.
  hook = trimspace(split(",", lookup(var.parameters, "Hooks", "spillway"))[0])
  # Without it the function may not complete the groups' hooks.
  group_tag = try(regex("^([^=]+)=(.*)$", lookup(var.parameters, "HookGroupTag", "")), null)
  tagged    = local.group_tag == null ? {} : var.groups
}

resource "aws_s3_object" "package" {
  for_each = local.packages
  bucket   = var.bucket
  key      = "${local.prefix}${each.value}"
  source   = "${local.folder}/${each.value}"

  lifecycle {
    create_before_destroy = true
  }
}

# The template has more than the 51,200 bytes that may be in the call itself.
resource "aws_s3_object" "template" {
  for_each = local.is_beside ? toset([local.template]) : toset([])
  bucket   = var.bucket
  key      = "${var.name}/${filesha256("${local.folder}/${each.value}")}.json"
  source   = "${local.folder}/${each.value}"

  lifecycle {
    create_before_destroy = true
  }
}

data "aws_s3_bucket" "this" {
  bucket = var.bucket
}

resource "aws_cloudformation_stack" "this" {
  name         = var.name
  capabilities = ["CAPABILITY_IAM"]
  template_url = "https://${data.aws_s3_bucket.this.bucket_regional_domain_name}/${local.is_beside ? aws_s3_object.template[local.template].key : "${local.prefix}${local.template}"}"
  parameters   = merge(var.parameters, { CodeBucket = var.bucket, CodePrefix = local.prefix })
  depends_on   = [aws_s3_object.package]
}

resource "aws_eks_access_entry" "this" {
  for_each          = var.clusters
  cluster_name      = each.value
  principal_arn     = aws_cloudformation_stack.this.outputs["RoleArn"]
  kubernetes_groups = ["spillway"]
}

resource "aws_autoscaling_group_tag" "this" {
  for_each               = local.tagged
  autoscaling_group_name = each.key

  tag {
    key                 = local.group_tag[0]
    value               = local.group_tag[1]
    propagate_at_launch = false
  }
}

# Last, because a hook that nobody completes delays the end of each instance.
resource "aws_autoscaling_lifecycle_hook" "this" {
  for_each               = var.groups
  name                   = local.hook
  autoscaling_group_name = each.key
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  heartbeat_timeout      = 600
  default_result         = each.value ? "ABANDON" : "CONTINUE"
  depends_on             = [aws_eks_access_entry.this, aws_autoscaling_group_tag.this]
}
