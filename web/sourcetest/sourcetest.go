// Package sourcetest has sources for the tests of the server: runs in memory, a network whose height never changes, and
// a launcher, files, a tuner and a model that know one thing each. They store nothing on disk and train nothing.
package sourcetest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/openai"
)

// Files is a source.Files with one file.
type Files struct{}

// File is the one of Files.
var File = api.FileObject{ID: "file-1", Object: "file", Bytes: 10, CreatedAt: 1000, Filename: "a",
	Purpose: "fine-tune", Status: "processed"}

// List implements source.Files.
func (Files) List() ([]api.FileObject, error) { return []api.FileObject{File}, nil }

// Keep implements source.Files.
func (Files) Keep(string, io.Reader) (api.FileObject, error) { return File, nil }

// Open implements source.Files.
func (Files) Open(string) (io.ReadSeekCloser, api.FileObject, error) {
	return content{strings.NewReader("0123456789")}, File, nil
}

// Remove implements source.Files.
func (Files) Remove(string) error { return nil }

// Tuner is a source.Tuner that knows one run.
type Tuner struct{}

// Job implements source.Tuner.
func (*Tuner) Job(r api.FineTuningRequest) (api.Spec, error) {
	if r.Model == "none" {
		return api.Spec{}, &failure.Error{Status: http.StatusNotFound, Code: "MODEL_NOT_FOUND", Detail: "none",
			Param: "model"}
	}
	return api.Spec{Config: "a: 1"}, nil
}

// Request implements source.Tuner.
func (*Tuner) Request(run string) (r api.FineTuningRequest, err error) {
	if run != "ftjob-1" {
		return r, failure.ErrNotFound
	}
	return api.FineTuningRequest{Model: "base", TrainingFile: File.ID, Suffix: "mine", Seed: Ptr(uint64(7)),
		Hyperparameters: api.Hyperparameters{Epochs: 3, Batch: 8, Rate: 1}}, nil
}

// Remove implements source.Tuner.
func (*Tuner) Remove(model string) error {
	if model != "ft:base:mine:ftjob-1" {
		return failure.ErrNotFound
	}
	return nil
}

// Model is a model that repeats the prompt.
type Model struct{}

// Models implements openai.Model.
func (Model) Models() []openai.Info {
	return []openai.Info{{Name: "ft:base:mine:ftjob-1", Created: time.Unix(1000, 0)}}
}

// Prompt implements openai.Model.
func (Model) Prompt(_ string, talk []openai.Message) (string, []string, error) {
	return talk[0].Content, nil, nil
}

// Generate implements openai.Model.
func (Model) Generate(_ context.Context, r openai.Request, emit func(openai.Piece) error) (openai.Result, error) {
	return openai.Result{Finish: "stop"}, emit(openai.Piece{Text: r.Prompt})
}

// Launcher is a source.Launcher whose jobs are runs of a Store already.
type Launcher struct{}

// Plan implements source.Launcher. It panics if the job file is "panic".
func (*Launcher) Plan(_ context.Context, s api.Spec) (api.Plan, error) {
	if s.Config == "panic" {
		panic("the launcher broke")
	}
	return api.Plan{ID: "job-1", Facts: []api.Fact{}, Notes: []string{}, Rejections: []api.Rejection{}}, nil
}

// Submit implements source.Launcher.
func (*Launcher) Submit(_ context.Context, key string, s api.Submission) (string, error) {
	if s.Name != "" {
		return "ftjob-1", nil
	}
	return "first", nil
}

// Cancel implements source.Launcher.
func (*Launcher) Cancel(_ context.Context, id string) error {
	if id != "first" && id != "ftjob-1" {
		return failure.ErrNotFound
	}
	return nil
}

// Pause implements source.Launcher.
func (*Launcher) Pause(ctx context.Context, id string) error { return (*Launcher)(nil).Cancel(ctx, id) }

// Network is a source.Network whose height never changes.
type Network struct{}

// Overview implements source.Network.
func (Network) Overview(context.Context) (api.Network, error) {
	return api.Network{ChainID: "village-1", Height: 9, Time: time.Unix(2000, 0).UTC(),
		Validators:   []api.Validator{{Address: "AB", Power: 1, Signed: true}},
		Participants: []api.Participant{{ID: "ann", Roles: []string{"worker"}, Jobs: []string{}}}, Orders: []api.Order{},
		Runs: []api.NetworkRun{}, Links: []api.Link{}}, nil
}

// Account implements source.Network.
func (Network) Account(_ context.Context, a string) (api.Account, error) {
	return api.Account{Address: a, Reasons: []api.Standing{}, Earned: []api.EarnedDay{}}, nil
}

// Tx implements source.Network.
func (Network) Tx(context.Context, string, int64) (api.Tx, error) {
	return api.Tx{Height: 9, Messages: []string{"a"}, Signers: []string{"ann"}, Transfers: []api.Transfer{}}, nil
}

// Blocks implements source.Network.
func (Network) Blocks(_ context.Context, _ int64, _ int, busy bool) (list []api.Block, next int64, err error) {
	if !busy {
		list = []api.Block{{Height: 9, Time: time.Unix(2000, 0).UTC(),
			Txs: []api.Tx{{Messages: []string{}, Signers: []string{}, Transfers: []api.Transfer{}}}}}
	}
	return list, 5, nil
}
