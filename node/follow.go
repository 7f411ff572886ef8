package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/push"
	"github.com/starling-network/starling/node/push/record"
	"github.com/starling-network/starling/node/tracking/mlflow"
)

// follow opens the services that the job file names: an MLflow server, a webhook, and the stores that get the model.
// A message that a service does not accept causes a warning.
func follow(ctx context.Context, opt *consumer.Options, dir string, b *prepare.CompiledJob, resumed bool) error {
	warn := func(text string) {
		if opt.Say != nil {
			opt.Say("warning: " + text)
		}
	}
	if n := opt.Job.Notify; n.Webhook != "" {
		secret, err := notify.Secret()
		if err != nil {
			return err
		}
		opt.Notify = notify.Open(notify.Config{URL: n.Webhook, On: n.On, Secret: secret,
			Failed: func(err error) { warn(err.Error()) }})
	}
	if err := openPush(ctx, opt, dir, b, warn); err != nil {
		return err
	}
	server := opt.Job.Tracking.MLflow
	if server.URI == "" {
		return nil
	}
	where := "embedded"
	if opt.Network != "" {
		where = opt.Network
	}
	var err error
	opt.MLflow, err = mlflow.Open(mlflow.Config{
		URI: server.URI, Experiment: server.Experiment, Run: opt.Job.Name, Job: b.JobID(),
		Params: mlflow.Params(opt.Job.Spec),
		Tags: map[string]string{"starling.network": where, "starling.version": opt.Version,
			"mlflow.source.name": "starling train"},
		Resumed: resumed,
		Away:    func(err error) { warn(err.Error() + "; it gets the metrics when it is back") },
		Failed: func(err error, lost int) {
			warn(fmt.Sprintf("%v; %d metrics are not on the MLflow server, metrics.jsonl has them all", err, lost))
		},
	})
	return err
}

// unfollow tells how the run ended.
func unfollow(ctx context.Context, opt consumer.Options, p consumer.Progress, err error) {
	name := opt.Job.Name
	switch {
	case err == nil:
		opt.Notify.Send(p.Event(notify.Finished, name), fmt.Sprintf("%s is finished: %d of %d rounds.", name, p.Round,
			p.Rounds))
		opt.MLflow.Close(mlflow.Finished)
		deliver(ctx, opt)
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		opt.MLflow.Close(mlflow.Killed)
	default:
		why, _, _ := strings.Cut(err.Error(), "\n")
		opt.Notify.Send(p.Event(notify.Failed, name), fmt.Sprintf("%s failed in round %d of %d: %s", name, p.Round,
			p.Rounds, why))
		opt.MLflow.Close(mlflow.Failed)
		if halted := (*consumer.HaltedError)(nil); errors.As(err, &halted) { // there is a model of the rounds before
			deliver(ctx, opt)
		}
	}
	opt.Push.Close()
	opt.Notify.Close()
}

// openPush begins to copy what earlier processes have left, and says at once what no store will accept.
func openPush(ctx context.Context, opt *consumer.Options, dir string, b *prepare.CompiledJob,
	warn func(text string)) (err error) {
	targets := opt.Job.Output.Push
	if len(targets) == 0 {
		return nil
	}
	for _, t := range targets {
		if err := push.Ready(t.To); err != nil {
			why := push.Reason(err)
			warn(fmt.Sprintf("the model will not arrive at %s: %s; %s", t.To, why.Text, why.Next))
		}
	}
	name := opt.Job.Name
	ended := func(p api.Push) {
		rounds := int(b.Spec.Rounds)
		e := notify.Event{Event: notify.Pushed, Job: b.JobID(), Name: name, Target: p.To, Rounds: rounds,
			Steps: rounds * int(b.Spec.Steps), Step: max(0, record.Step(p.From))}
		if p.State == record.Done {
			opt.Notify.Send(e, fmt.Sprintf("%s is at %s.", name, p.Address))
			return
		}
		e.Event = notify.PushFailed
		opt.Notify.Send(e, fmt.Sprintf("%s is not copied to %s: %s.", name, p.To, p.Reason.Text))
	}
	opt.Push, err = push.Open(push.Options{Dir: dir, Title: name, Listen: opt.Listen, Say: opt.Say, Ended: ended})
	if err == nil {
		opt.Push.Start(ctx)
	}
	return err
}

// patience is the longest time for which the end of a run waits for stores that do not take a byte.
const patience = 10 * time.Minute

// deliver has the model of the run copied, and waits for that. A store that refuses, or is away for too long, costs
// the run nothing.
func deliver(ctx context.Context, opt consumer.Options) {
	if opt.Push == nil {
		return
	}
	var to []string
	for _, t := range opt.Job.Output.Push {
		to = append(to, t.To)
	}
	err := opt.Push.Add("", to...)
	if (err != nil || !opt.Push.Settle(ctx, patience)) && opt.Say != nil {
		opt.Say("warning: not every copy of the model is made; starling model push " + opt.Dir + " continues")
	}
}
