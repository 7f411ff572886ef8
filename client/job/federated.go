package job

import (
	"errors"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// Federated is Parse for a FederatedJob, and refuses any other.
func Federated(source []byte, path string, overrides ...string) (*Job, error) {
	return ofKind(source, path, spec.FederatedJob, overrides)
}

// ReadFederated is Read for a FederatedJob.
func ReadFederated(path string, overrides ...string) (*Job, error) {
	source, err := open(path)
	if err != nil {
		return nil, err
	}
	return Federated(source, path, overrides...)
}

// otherKind refuses a job of another kind than is wanted.
func (j *Job) otherKind() error {
	why, fix := "its data stay with their owners, who train by a program of their own", "use starling job federated serve"
	if j.Kind != spec.FederatedJob {
		why, fix = "its workers read the data", "use starling train, or write kind: FederatedJob with a section federated"
	}
	return j.Refuse("kind", problem.Unsupported, "kind is "+j.Kind, errors.New(why), fix)
}
