package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run"
)

// ErrNoSecret says that a run has published encrypted shards, and their secret is not in its folder.
var ErrNoSecret = errors.New("the secret of the encrypted data is missing")

// Encrypted prepares a job with encrypt_data: its shards are encrypted by keys that follow from the secret in the
// folder of the run. nil: the job has no encrypt_data. The error is ErrNoSecret if the run has published encrypted
// shards and the secret is gone.
func Encrypted(b *prepare.CompiledJob, out *rundir.OutDir) (*release.Job, error) {
	if !b.Job.EncryptData {
		return nil, nil
	}
	open := envelope.OpenSecret
	if len(out.Run.Blobs.Shards) > 0 {
		open = envelope.ReadSecret // another one would open none of them
	}
	secret, err := open(out.File(rundir.FileDataKey))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNoSecret, err)
	}
	if err != nil {
		return nil, err
	}
	b.Seal = func(i int, shard []byte) ([]byte, error) { return secret.Seal(b.Manifest, i, shard) }
	return &release.Job{Secret: secret, Manifest: b.Manifest, Spec: b.Spec,
		Listed: b.Job.Strategy.Verification.Attested.Terms(), Record: func(r release.Release) error {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			return out.Append(rundir.FileReleases, append(line, '\n'))
		}}, nil
}

// answersAbout answers questions about the keys of the shards, under the name of the job on its network, until stop is
// called. In an embedded network no machine has to be attested, since all members run on this machine.
func answersAbout(c *Consumer) (stop func()) {
	if c.keys == nil {
		return func() {}
	}
	id := c.Job.JobID()
	c.keys.ID, c.keys.Accounts = id, c.Chain.Registry
	c.keys.Run = func(ctx context.Context) (run.State, error) { return c.Chain.Training.Run(ctx, id) }
	c.keys.Attested = c.Job.Job.Resources.Attested && c.Options.Network != ""
	return c.keyServer.Open(c.keys)
}
