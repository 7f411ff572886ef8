package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/tracking/mlflow"
)

// follow opens the services that the job file names: an MLflow server and a webhook. A message that a service does
// not accept causes a warning.
func follow(opt *consumer.Options, b *prepare.CompiledJob, resumed bool) error {
	warn := func(text string) {
		if opt.Say != nil {
			opt.Say("warning: " + text)
		}
	}
	if n := opt.Job.Notify; n.Webhook != "" {
		opt.Notify = notify.Open(notify.Config{URL: n.Webhook, On: n.On,
			Failed: func(err error) { warn(err.Error()) }})
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
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		opt.MLflow.Close(mlflow.Killed)
	default:
		why, _, _ := strings.Cut(err.Error(), "\n")
		opt.Notify.Send(p.Event(notify.Failed, name), fmt.Sprintf("%s failed in round %d of %d: %s", name, p.Round,
			p.Rounds, why))
		opt.MLflow.Close(mlflow.Failed)
	}
	opt.Notify.Close()
}
