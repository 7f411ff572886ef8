package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/receipt"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/push"
	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/record"
)

func pushCommand(c *terminal.Console) *cobra.Command {
	var wait time.Duration
	var listen []string
	cmd := &cobra.Command{
		Use:   "push FOLDER [TARGET...]",
		Short: "Copy a model to a bucket, a hub or a pinning service",
		Long: `Copy the model in a folder, such as the output folder of a run, to stores outside of the network. Without a
TARGET, make or continue the copies that output.push of the job asks for and that are not done.

  s3://BUCKET/PREFIX  a store with the protocol of Amazon S3. The credentials are those of AWS's tools:
                      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or AWS_PROFILE in
                      ~/.aws/credentials; AWS_REGION; AWS_ENDPOINT_URL_S3 for a store other than Amazon's.
  hf:OWNER/NAME       a repository of the Hugging Face Hub, or of the server that HF_ENDPOINT names, with the token
                      HF_TOKEN. A repository that is missing is made, and is private.
  ipfs                the pinning service of IPFS at IPFS_PINNING_ENDPOINT, with the token IPFS_PINNING_TOKEN. It gets
                      the last checkpoint of a run, in the form and with the CID of its lineage, from this process,
                      which it must reach at --listen.

Weights, configuration, tokenizer, card and the public records of a run are sent: no log, no key and no job file. Files
that the store has are not sent again, and a copy that was cut off continues. push.json in the folder keeps how far each
copy is; no credential is in it. A store that does not answer is asked again until --wait has passed without a byte.

With -o json: {"folder","pushes":[{"to","from","state","files","bytes","sent_bytes","address","reason":{"code","text",
"next"},"updated"}]}.`,
		Example: `  starling model push out/quickstart s3://models/quickstart
  starling model push out/quickstart hf:starling/quickstart
  AWS_ENDPOINT_URL_S3=http://10.0.0.5:9000 starling model push out/quickstart s3://models/quickstart
  starling model push out/quickstart ipfs --listen /ip4/203.0.113.8/tcp/4001
  starling model push out/quickstart`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Error(cmd, errors.New("FOLDER is needed: that of a model"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return pushModel(cmd.Context(), c, args[0], args[1:], wait, listen)
		},
	}
	cmd.Flags().StringSliceVar(&listen, "listen", nil, "multiaddrs at which a pinning service reaches this process "+
		"(default: any port of the loopback)")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "longest time without progress")
	return cmd
}

func pushModel(ctx context.Context, c *terminal.Console, dir string, to []string, wait time.Duration,
	listen []string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return terminal.WithExit(&terminal.Problem{Code: parcel.NoModel, What: dir + " is no folder",
			Fix: "name the folder of a model"}, terminal.ExitNotFound)
	}
	unlock, err := folder.Lock(dir)
	if errors.Is(err, folder.ErrInUse) {
		return terminal.WithExit(&terminal.Problem{Code: "RUN_IN_USE", What: "another process uses " + dir,
			Fix: "wait until the run in it is over: it makes the copies of its job file itself"}, terminal.ExitConflict)
	}
	if err != nil {
		return pushError(api.Push{Reason: push.Reason(parcel.OnDisk(err))}, "")
	}
	defer unlock()
	progress := terminal.NewProgress(os.Stderr, terminal.ModeFor(os.Stderr, c.Quiet || c.Form.Machine()),
		terminal.Width(os.Stderr))
	said := time.Time{}
	name := filepath.Base(dir)
	if whole, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(whole)
	}
	s, err := push.Open(push.Options{Dir: dir, Title: name, Listen: listen,
		Say: func(text string) { progress.Say(time.Now(), text) },
		Sent: func(p api.Push) {
			if now := time.Now(); now.Sub(said) >= 5*time.Second {
				said = now
				progress.Say(now, receipt.Copy(p))
			}
		}})
	if err == nil && len(to) > 0 {
		err = s.Add("", to...)
	} else if err == nil {
		err = s.Again()
	}
	if err != nil {
		return pushError(api.Push{Reason: push.Reason(err)}, "")
	}
	s.Start(ctx)
	s.Settle(ctx, wait)
	s.Close()
	progress.Done()
	return copied(ctx, c, dir, to, s.Copies())
}

// copied shows the copies that were asked for, all of them where none was named.
func copied(ctx context.Context, c *terminal.Console, dir string, to []string, all []api.Push) error {
	if len(to) > 0 {
		all = slices.DeleteFunc(all, func(p api.Push) bool { return p.From != "" || !slices.Contains(to, p.To) })
	}
	if len(all) == 0 {
		return terminal.WithExit(&terminal.Problem{Code: "PUSH_NOTHING", What: "nothing of " + dir + " waits to be copied",
			Fix: "name a target, such as s3://BUCKET/PREFIX, hf:OWNER/NAME or ipfs"}, terminal.ExitNotFound)
	}
	if at := slices.IndexFunc(all, func(p api.Push) bool { return p.State != record.Done }); at >= 0 {
		return terminal.IfInterrupted(ctx, pushError(all[at], dir), "starling model push "+dir)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(map[string]any{"folder": dir, "pushes": all}, all,
			func(p api.Push) string { return p.Address }))
	}
	for _, p := range all {
		fmt.Println(receipt.Copy(p))
	}
	return nil
}

// exits are the exit codes of reasons.
var exits = map[string]int{
	parcel.BadTarget: terminal.ExitUsage, parcel.Credentials: terminal.ExitAuth, parcel.Denied: terminal.ExitAuth,
	parcel.NotFound: terminal.ExitNotFound, parcel.NoModel: terminal.ExitNotFound,
	parcel.Unreachable: terminal.ExitUnreachable, parcel.Conflict: terminal.ExitConflict,
	parcel.Region: terminal.ExitConflict, parcel.Disk: terminal.ExitFailure, parcel.Refused: terminal.ExitFailure,
}

// pushError is the error of a copy that is not done.
func pushError(p api.Push, dir string) error {
	why := p.Reason
	if why == nil {
		why = &api.Reason{Code: parcel.Unreachable, Text: "it was not begun in time", Next: "raise --wait"}
	}
	e := &terminal.Problem{Code: why.Code, What: "the model is not copied", Why: why.Text, Fix: why.Next,
		Retry: why.Code == parcel.Unreachable || why.Code == parcel.Conflict}
	if p.To != "" {
		e.What += " to " + p.To
	}
	if e.Fix == "" {
		e.Fix = "starling model push " + dir + " continues"
	}
	return terminal.WithExit(e, exits[why.Code])
}
