package node_test

import (
	"errors"
	"os"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
)

// A run that has published encrypted shards continues with their secret alone: keys that follow from another open none.
func TestSecretOfPublishedShardsIsNeeded(t *testing.T) {
	out, err := rundir.OpenOutDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	b := &prepare.CompiledJob{Job: &job.Job{}}
	b.Job.EncryptData = true
	first, err := consumer.Encrypted(b, out)
	if err != nil {
		t.Fatal(err)
	}
	out.Run.Blobs.Shards = []string{"published"}
	if again, err := consumer.Encrypted(b, out); err != nil || again.Secret != first.Secret {
		t.Errorf("a run that is resumed has another secret: %v", err)
	}
	if err := os.Remove(out.File(rundir.FileDataKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Encrypted(b, out); !errors.Is(err, consumer.ErrNoSecret) {
		t.Errorf("without the secret: %v", err)
	}
	if _, err := os.Stat(out.File(rundir.FileDataKey)); err == nil {
		t.Error("it has got another secret")
	}
}
