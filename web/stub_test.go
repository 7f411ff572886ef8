package web

import (
	"context"
	"time"

	"github.com/starling-network/starling/client/api"
)

// pad is a Launcher that has started the first job already.
type pad struct{}

func (*pad) Plan(_ context.Context, s api.Spec) (api.Plan, error) {
	if s.Config == "panic" {
		panic("pad broke")
	}
	return api.Plan{ID: "job-1", Facts: []api.Fact{}, Notes: []string{}, Rejections: []api.Rejection{}}, nil
}
func (*pad) Submit(_ context.Context, key string, s api.Submission) (string, error) {
	if s.Name != "" {
		return "ftjob-1", nil
	}
	return "first", nil
}
func (*pad) Cancel(_ context.Context, id string) error {
	if id != "first" && id != "ftjob-1" {
		return ErrNotFound
	}
	return nil
}

// village is a small network that stands still.
type village struct{}

func (village) Overview(context.Context) (api.Network, error) {
	return api.Network{ChainID: "village-1", Height: 9, Time: time.Unix(2000, 0).UTC(),
		Validators:   []api.Validator{{Address: "AB", Power: 1, Signed: true}},
		Participants: []api.Participant{{ID: "ann", Roles: []string{"worker"}, Jobs: []string{}}}, Orders: []api.Order{},
		Runs: []api.NetworkRun{}, Links: []api.Link{}}, nil
}
func (village) Account(_ context.Context, a string) (api.Account, error) {
	return api.Account{Address: a, Reasons: []api.Standing{}, Earned: []api.EarnedDay{}}, nil
}
func (village) Tx(context.Context, string, int64) (api.Tx, error) {
	return api.Tx{Height: 9, Messages: []string{"a"}, Signers: []string{"ann"}, Transfers: []api.Transfer{}}, nil
}
