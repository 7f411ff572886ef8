package rundir

import (
	"context"
	"maps"
	"os"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
)

func (o *OutDir) LoadJob(jobFile string) (*job.Job, error) {
	j, err := o.readJob(jobFile)
	if err != nil {
		return nil, err
	}
	j.Numerics = o.Numerics()
	return j, nil
}

func (o *OutDir) readJob(jobFile string) (*job.Job, error) {
	if jobFile != "" {
		return job.Load(jobFile, o.Run.Overrides...)
	}
	source, err := os.ReadFile(o.File(FileJob))
	if err != nil {
		return nil, err
	}
	return job.Parse(source, o.Run.JobFile, o.Run.Overrides...)
}

// ShippedBase is the model that the job started from, if it did not start from scratch. Whether it is the right one
// shows in the identifier of the job that is made from it.
func (o *OutDir) ShippedBase(ctx context.Context, j *job.Job, store *blob.Disk) (*folder.Model, error) {
	if j.Model.BaseModel == "" {
		return nil, nil
	}
	config, err := o.baseConfig(j)
	if err != nil {
		return nil, err
	}
	tensors, err := o.ShippedFrozen(ctx, store) // under an adapter, or as the reference of preferences
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(tensors, func(name string, _ *tensor.Tensor) bool { return model.IsJudge(name) })
	if len(tensors) == 0 {
		if tensors, err = weights(ctx, store, o.Run.Blobs.Genesis); err != nil {
			return nil, err
		}
	}
	base := &folder.Model{Config: config, Tensors: map[string]*tensor.Tensor{}}
	for name, t := range tensors {
		base.Tensors[strings.TrimPrefix(name, model.Reference)] = t
	}
	return base, nil
}

// baseConfig is that of the model that the job started from, as the model of the run has it.
func (o *OutDir) baseConfig(j *job.Job) (architecture.Config, error) {
	if j.Task != spec.TaskEmbed {
		return folder.ReadConfig(os.DirFS(o.Path))
	}
	raw, err := os.ReadFile(o.File("config.json"))
	if err != nil {
		return architecture.Config{}, err
	}
	n, err := embed.Read(raw, j.SequenceLen)
	return n.Language(), err
}

// ShippedFrozen are the tensors that the job reads and does not train, by their names; nil: there are none.
func (o *OutDir) ShippedFrozen(ctx context.Context, store *blob.Disk) (map[string]*tensor.Tensor, error) {
	if o.Run.Blobs.Frozen == "" {
		return nil, nil
	}
	return weights(ctx, store, o.Run.Blobs.Frozen)
}

// weights are the tensors with the names of weights in a checkpoint, by these names.
func weights(ctx context.Context, store *blob.Disk, cid string) (map[string]*tensor.Tensor, error) {
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	_, tensors, err := checkpoint.Load(ctx, store.Get, checkpoint.InTurn, id)
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	for name, t := range tensors {
		if n, ok := strings.CutPrefix(name, train.Param); ok {
			all[n] = t
		}
	}
	return all, nil
}
