package federated

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/web/access"
)

// serving are the flags of serve.
type serving struct {
	listen, dir, cert, key, owners string
	set                            []string
	phase                          time.Duration
	threads                        int
	dryRun                         bool
}

func serveCommand(c *terminal.Console) *cobra.Command {
	var f serving
	cmd := &cobra.Command{
		Use:   "serve JOB.yaml [--listen ADDRESS] [--tls-cert FILE --tls-key FILE]",
		Short: "Coordinate a job on data of owners",
		Long: `Hold the model of a job file of kind FederatedJob, and train it in rounds with the owners that join. In
each round the coordinator adds the updates of the owners that answer, under masks, and moves the model by their mean.
If too few owners answer, the round has no sum, the model stays as it was, and the next round begins. With
federated.updates: encrypted it adds ciphertexts, and owners add their keys under masks: the model is the same to the
bit. A message has 6 bytes for each weight in place of 4, and at most 16,777,216 weights.

The datasets of the job file are a sample that may be public. The training step is made from this sample, and the loss
after each round is measured on its held-out part.

With model.base_model the rounds begin from a pretrained model, of which each owner has a copy. With model.adapter the
owners train an adapter of it: one factor in the first round, the other one in the second, and so on in turn.

The folder of the run holds the checkpoint, a line for each round, the report, and in the end the model. After an
interruption the same command continues the run. The round that was interrupted has no sum, because an owner sends at
most one update in a round.

An address beyond the loopback needs --tls-cert and --tls-key. Without --owners, any owner may join until the job has
as many as federated.owners.

--dry-run starts nothing and says what the job will take: memory, disk, traffic and time of each owner and of the
coordinator, measured on this machine with the sample, epsilon and delta of the whole job, and the price and the
protection of a sum in each way. With -o json: {"name","updates","rounds","steps","owners","min_cohort","weights",
"step_seconds","owner","coordinator","seconds","epsilon","delta","example","ways","others","notes"}, where a party is
{"memory_bytes","disk_bytes","sent_bytes","received_bytes","seconds"} and a way {"way","owners","summed","weights",
"sent","received","owner_seconds","coordinator_seconds","exact","protects","leaves"}.

With -o json otherwise: {"job","name","dir","model","rounds","void","owners","min_cohort","dropouts","faults",
"epsilon","delta","example":{"epsilon","delta","rate","steps"},"first_loss","final_loss","measured","assumptions"}.`,
		Example: `  starling job federated serve examples/federated.yaml
  starling job federated serve examples/federated.yaml --dry-run
  starling job federated serve job.yaml --listen 0.0.0.0:8443 --tls-cert cert.pem \
      --tls-key key.pem --owners owners.txt`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dryRun {
				return terminal.IfInterrupted(cmd.Context(), explain(f.plan(cmd.Context(), c, args[0])), cmd.CommandPath())
			}
			r, err := f.run(cmd, c, args[0])
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), explain(err), cmd.CommandPath())
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Dir))
			}
			return show(r)
		},
	}
	l := cmd.Flags()
	l.StringVar(&f.listen, "listen", "127.0.0.1:8766", "address and port; port 0 takes a free one")
	l.StringVar(&f.dir, "dir", "", "folder of the run (default: output.dir of the job)")
	l.StringVar(&f.cert, "tls-cert", "", "certificate of the server, as PEM")
	l.StringVar(&f.key, "tls-key", "", "key of that certificate, as PEM")
	l.StringVar(&f.owners, "owners", "", "file of the keys of owners that may join, one a line")
	l.StringArrayVar(&f.set, "set", nil, "change a key of the job file, such as training.max_steps=100")
	l.DurationVar(&f.phase, "phase-timeout", 30*time.Second, "how long a phase of a secure sum waits for an owner")
	l.BoolVar(&f.dryRun, "dry-run", false, "say what the job will take, and what other ways to add updates cost; start "+
		"nothing")
	usage.ThreadsFlag(cmd, &f.threads)
	return cmd
}

func (f serving) run(cmd *cobra.Command, c *terminal.Console, path string) (r *federated.Report, err error) {
	loopback, err := access.Loopback(f.listen)
	if err != nil {
		return nil, usage.Error(cmd, fmt.Errorf("--listen: %w", err))
	}
	if (f.cert == "") != (f.key == "") || !loopback && f.cert == "" {
		return nil, usage.Error(cmd, errors.New("beyond the loopback both --tls-cert and --tls-key are needed: the "+
			"network could change the job that owners are given"))
	}
	opt := federated.Options{Dir: f.dir, Phase: f.phase, Threads: f.threads, Say: c.Say}
	if f.owners != "" {
		if opt.Allowed, err = readKeys(f.owners); err != nil {
			return nil, usage.Error(cmd, err)
		}
	}
	j, err := job.ReadFederated(path, f.set...)
	if err == nil {
		err = errors.Join(j.Confine(""), j.CheckFiles())
	}
	if err != nil {
		return nil, err
	}
	if opt.Dir == "" {
		opt.Dir = j.Output.Dir
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := folder.Lock(opt.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	b, err := prepare.New(j)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	coordinator, err := federated.New(b, opt)
	if err != nil {
		return nil, err
	}
	return f.serve(cmd.Context(), c, coordinator)
}

// serve answers owners while the rounds are played.
func (f serving) serve(ctx context.Context, c *terminal.Console, co *federated.Coordinator) (*federated.Report, error) {
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, &terminal.Problem{Code: "LISTEN_FAILED", What: "cannot listen on " + f.listen, Why: err.Error(),
			Fix: "give another --listen address"}
	}
	scheme := "http"
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l, scheme = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}),
			"https"
	}
	h := &http.Server{Handler: wire.Handler(co, co.Job(), wire.Wall{}), ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout: 10 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	c.Say(fmt.Sprintf("job %s at %s://%s", co.Job(), scheme, l.Addr()))
	r, err := co.Run(ctx)
	if err == nil {
		co.Linger(ctx, federated.Lingers)
	}
	err = errors.Join(err, h.Close())
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return r, err
}

// show is the report for people.
func show(r *federated.Report) error {
	fmt.Printf("%d rounds with a sum of at least %d owners, %d without\nloss     %s -> %s\n", r.Rounds, r.MinCohort,
		r.Void, loss(r.FirstLoss), loss(r.FinalLoss))
	fmt.Printf("privacy  %s\n         %s\n", ofOwners(r.Epsilon, r.Delta), ofExamples(r.Example))
	for _, a := range r.Assumptions {
		fmt.Println("  -", a)
	}
	_, err := fmt.Printf("model    %s\n", r.Dir)
	return err
}

// ofOwners is the privacy of an owner for people.
func ofOwners(epsilon *float64, delta float64) string {
	if epsilon == nil {
		return "none for owners: there is no noise"
	}
	return fmt.Sprintf("epsilon %.3f at delta %g for all data of one owner", *epsilon, delta)
}

// ofExamples is the privacy of an example for people.
func ofExamples(x *federated.Example) string {
	if x == nil {
		return "none for examples: there is no noise for them"
	}
	return fmt.Sprintf("epsilon %.3f at delta %g for one example of an owner", x.Epsilon, x.Delta)
}

// loss is one for people; nil: nothing was held out.
func loss(x *float64) string {
	if x == nil {
		return "not measured"
	}
	return terminal.Loss(*x)
}
