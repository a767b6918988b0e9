variable "bucket" {
  description = "A bucket in the Region of the provider, for the functions' code and the template."
  type        = string
}

variable "release" {
  description = "Version of a release whose files are in the bucket below spillway/VERSION/. Empty: the module uploads the files of the release around it."
  type        = string
  default     = ""
}

variable "clusters" {
  description = "The EKS clusters that let the function in. Their authentication mode is API or API_AND_CONFIG_MAP."
  type        = set(string)
  default     = []
}

variable "groups" {
  description = "The self-managed Auto Scaling groups that get a terminate hook. true: the group keeps an instance whose hook is abandoned (TerminateHookAbandon=retain)."
  type        = map(bool)
  default     = {}
}

variable "parameters" {
  description = "Parameters of the stack that differ from their defaults: docs/settings.md. One that is taken out goes back to its default."
  type        = map(string)
  default     = {}
}

variable "name" {
  description = "The name of the stack."
  type        = string
  default     = "spillway"
}

variable "architecture" {
  description = "Processor of the functions."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The release has packages for arm64 and x86_64."
  }
}
