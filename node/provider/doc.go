// Package provider is the process of a worker or verifier: it registers, offers its work, and takes part in the runs
// that it is matched to. Package member is its part in one run.
package provider
