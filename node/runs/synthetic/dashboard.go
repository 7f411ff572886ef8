package synthetic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/client/api"
)

// Pages are the addresses of the dashboard over a Folder and a Network: every kind of page, and two that do not exist.
var Pages = []string{
	"jobs", "jobs/long", "jobs/long/charts", "jobs/long/charts?x=time&smooth=0.9&log=1", "jobs/long/workers",
	"jobs/long/lineage",
	"jobs/long/receipts", "jobs/long/receipts?zero=true", "jobs/short/receipts", "jobs/long/disputes", "jobs/long/samples",
	"jobs/long/log", "jobs/long/job", "jobs/short", "jobs/sweep:000/workers", "compare?runs=long,short&x=tokens",
	"compare?runs=same,short&metric=loss", "models", "models/long", "models/nothing", "simulator", "network", "workers",
	"workers/" + ann, "validators", "explorer", "explorer?busy=1", "explorer/tx/" + sentHash, "explorer/account/" + ann,
	"health", "nowhere", "jobs/unknown",
}

// Folder writes what a server shows: a long run that is over and left a model, two short ones, and a sweep.
func Folder(root string) error {
	for _, r := range []Run{
		{Name: "long", Steps: 4_000, Every: 20, Finished: true},
		{Name: "short", Steps: 200, Every: 10}, {Name: "same", Steps: 200, Every: 10},
	} {
		if err := r.Write(filepath.Join(root, r.Name)); err != nil {
			return err
		}
	}
	var failed error
	write := func(path, text string) {
		path = filepath.Join(root, path)
		failed = errors.Join(failed, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	write("long/model.safetensors", "x")
	write("long/config.json", "{}")
	write("long/starling.log", "time=now level=INFO msg=begun\ntime=now level=WARN msg=slow\n")
	for i, result := range []string{
		`"rounds":2,"first_eval_loss":5,"final_eval_loss":3,"seconds":20,"bytes_up":100,"parties":[{"name":"worker-0"}]`,
		`"rounds":4,"seconds":40,"bytes_up":50`,
	} {
		variant := fmt.Sprintf("sweep/%03d/", i)
		write(variant+"simulation.json", `{"name":"s","steps":20,`+result+"}")
		var lines strings.Builder
		for round, step := range []int{1, 4} {
			line, err := json.Marshal(api.Metric{Kind: "round", Round: uint32(round), Step: uint32(round * step),
				EvalLoss: at(step), Workers: workers})
			failed = errors.Join(failed, err)
			lines.WriteString(string(line) + "\n")
		}
		write(variant+"metrics.jsonl", lines.String())
	}
	return failed
}

const (
	ann = "starling1aaaaaaaaaaaaaaaaaaaaaaaa"
	bob = "starling1bbbbbbbbbbbbbbbbb"
)

// Network is a network that stands still.
type Network struct{}

// Overview implements web.Network.
func (Network) Overview(context.Context) (api.Network, error) {
	return api.Network{
		Address: "http://validator", ChainID: "hamlet-1", Height: 7, Window: 100,
		Validators: []api.Validator{
			{Address: strings.Repeat("AB", 20), Power: 5, Signed: true},
			{Address: strings.Repeat("CD", 20), Power: 5, Missed: 60},
		},
		Links: []api.Link{{By: ann, Of: bob, Bytes: 3e6, Rate: 1e6, RTT: 12}, {By: bob, Of: ann, Bytes: 1e6}},
		Participants: []api.Participant{
			{ID: ann, Roles: []string{"worker"}, Offers: true, Price: 1e9, Stake: 1e8, Jobs: []string{"job-1"},
				Device: "linux/amd64"},
			{ID: bob, Roles: []string{}, Jailed: true, Jobs: []string{}},
		},
		Orders: []api.Order{{Job: "job-2", Why: "no_worker_fits", Budget: 5e6}},
		Runs: []api.NetworkRun{{Job: "job-0000000000000000", Phase: "train", Round: 2, Rounds: 9, Workers: 3,
			Verifiers: 1, Budget: 5e6, Paid: 1e6}},
	}, nil
}

// Account implements web.Network.
func (Network) Account(_ context.Context, a string) (api.Account, error) {
	earned := []api.EarnedDay{{Day: "2026-11-25", ReceivedUzen: 4e6, Receipts: 7, Unpaid: 1},
		{Day: "2026-11-24", ReceivedUzen: 9e6, LostUzen: 1e6, Receipts: 12}, {ReceivedUzen: 5e6, Receipts: 3}}
	return api.Account{Address: a, Balance: 1e12, Stake: 1e8, Earned: earned,
		Reasons: []api.Standing{{Code: "trains", Kind: "works", Job: "job-1", Round: 2, Text: "one unit to train",
			Until: 99, Do: "keep the machine on"}}}, nil
}

// Blocks implements web.Network.
func (Network) Blocks(context.Context, int64, int, bool) ([]api.Block, int64, error) {
	return []api.Block{{Height: 7, Hash: strings.Repeat("ab", 32), Proposer: strings.Repeat("AB", 20), Signed: 2,
		Txs: []api.Tx{sent}}}, 0, nil
}

// sent is a transaction that sends coins.
var sent = api.Tx{Hash: sentHash, Height: 7, Messages: []string{"cosmos.bank.v1beta1.MsgSend"}, Signers: []string{ann},
	GasUsed: 1, Bytes: 100, Fee: 20, Memo: "for the winter",
	Transfers: []api.Transfer{{From: ann, To: bob, Uzen: 2_500_000}}}

var sentHash = strings.Repeat("cd", 32)

// Tx implements web.Network.
func (Network) Tx(context.Context, string, int64) (api.Tx, error) {
	return sent, nil
}
