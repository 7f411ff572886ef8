// Package federated is starling job federated: the coordinator and the owners of a job on private data. The work is in
// node/federated.
package federated

import (
	"bufio"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/folder"
)

// Command is starling job federated.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("federated", "Train one model on data that stay with their owners",
		`Train one model on data that stay with their owners. A coordinator holds the model. Owners connect to it, train on
their own data, and send updates under masks or encrypted, so that the coordinator learns only the sum of the updates.
docs/security.md lists which observer learns something, and which does not.`,
		serveCommand(c), joinCommand(c), ledgerCommand(c))
}

// explain gives the errors of both sides their codes.
func explain(err error) error {
	var wrong *problem.ErrorList
	with := func(code, what, fix string, exit int) error {
		return terminal.WithExit(&terminal.Problem{Code: code, What: what, Why: err.Error(), Fix: fix}, exit)
	}
	switch {
	case errors.As(err, &wrong):
		return terminal.WithExit(err, terminal.ExitUsage)
	case errors.Is(err, owner.ErrBudget):
		return with("PRIVACY_BUDGET", "nothing was sent", "raise --epsilon, or leave this job out", terminal.ExitFunds)
	case errors.Is(err, owner.ErrJob):
		return with("DATA_MISMATCH", "the data of this owner do not fit", "see the job file, which the coordinator has",
			terminal.ExitConflict)
	case errors.Is(err, federated.ErrPublic):
		return with("PUBLIC_UPDATES", "the job has no masks", "train it with starling market committee host, or write "+
			"federated: {updates: masked}", terminal.ExitUsage)
	case errors.Is(err, homomorphic.ErrSize):
		return with("UPDATE_TOO_LARGE", "the update of an owner is too large to be encrypted", "write federated: {updates: "+
			"masked}, of 4 bytes for each weight, or train an adapter (model.adapter)", terminal.ExitUsage)
	case errors.Is(err, federated.ErrOtherJob):
		return with("OUTPUT_CONFLICT", "the folder holds another run", "give another folder with --dir",
			terminal.ExitConflict)
	case errors.Is(err, folder.ErrInUse):
		return with("FOLDER_IN_USE", "one process uses a folder at a time", "end the other, or give another folder",
			terminal.ExitConflict)
	case errors.Is(err, wire.ErrUnknown):
		return with("OWNER_UNKNOWN", "the coordinator does not take this owner",
			"give its operator the key that starling job federated ledger shows", terminal.ExitAuth)
	case errors.Is(err, wire.ErrNoAnswer):
		return with("NETWORK_UNREACHABLE", "no answer from the coordinator", "check the address, and that it runs",
			terminal.ExitUnreachable)
	}
	return err
}

// readKeys reads a file of public keys of owners, in hexadecimal, one a line. Text after a # is left out.
func readKeys(path string) (keys []ed25519.PublicKey, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		k, err := hex.DecodeString(text)
		if err != nil || len(k) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%s:%d: not a key of 64 hexadecimal digits", path, n)
		}
		keys = append(keys, k)
	}
	if lines.Err() == nil && len(keys) == 0 {
		return nil, fmt.Errorf("%s lists no key", path)
	}
	return keys, lines.Err()
}
