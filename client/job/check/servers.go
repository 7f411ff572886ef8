package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/strict"
)

// followers checks which servers the process of the run calls.
func (c *checker) followers() {
	const hook, on, server, experiment = "notify.webhook", "notify.on", "tracking.mlflow.uri", "tracking.mlflow.experiment"
	for _, to := range []struct{ path, address string }{{hook, c.Notify.Webhook}, {server, c.Tracking.MLflow.URI}} {
		if to.address != "" && !c.bad(to.path) && !spec.IsWeb(to.address) {
			c.report(to.path, problem.BadValue, fmt.Sprintf("%s: %q is no address", to.path, strict.Clip(to.address)),
				"it is that of a web server", "write it as http://HOST:PORT or https://HOST/PATH")
		}
	}
	for i, set := range c.Datasets {
		at := fmt.Sprintf("datasets.%d.sha256", i)
		switch digest, err := hex.DecodeString(set.SHA256); {
		case set.SHA256 == "" || c.bad(at):
		case !set.Remote():
			c.report(at, problem.BadValue, at+" is given for a file of this machine",
				"only what is downloaded is held against a digest", "remove it")
		case err != nil || len(digest) != sha256.Size || strings.ToLower(set.SHA256) != set.SHA256:
			c.report(at, problem.BadValue, fmt.Sprintf("%s: %q is no digest", at, strict.Clip(set.SHA256)),
				"a SHA-256 has 64 digits of 0 to 9 and a to f", "copy it from the place that offers the file")
		}
	}
	if c.Notify.Webhook == "" && c.file.Given(on) && !c.bad(hook, on) {
		c.report(on, problem.BadValue, on+" is given without "+hook, "there is no address to send notices to",
			"add webhook, or remove on")
	}
	if c.Tracking.MLflow.URI == "" && c.Tracking.MLflow.Experiment != "" && !c.bad(server, experiment) {
		c.report(experiment, problem.BadValue, experiment+" is given without "+server, "no server would get the metrics",
			"add uri, or remove experiment")
	}
	pushes(c)
}

// pushes checks which stores get the model.
func pushes(c *checker) {
	seen := map[string]bool{}
	for i, p := range c.Output.Push {
		at := fmt.Sprintf("output.push.%d", i)
		switch {
		case c.bad("output.push", at, at+".to"):
		case !p.Known():
			c.report(at, problem.BadValue, fmt.Sprintf("%s: %q is no target", at, strict.Clip(p.To)),
				"a target is a folder of a bucket, a repository of a hub, or a pinning service; credentials come from the "+
					"environment",
				"write it as s3://BUCKET/PREFIX, hf:OWNER/NAME or ipfs")
		case p.IPFS() && p.Checkpoints:
			c.report(at+".checkpoints", problem.BadValue, at+".checkpoints is given with ipfs",
				"a pinning service gets the last checkpoint of the run alone", "remove checkpoints")
		case seen[p.To]:
			c.report(at, problem.BadValue, fmt.Sprintf("%s: %q is named twice", at, strict.Clip(p.To)),
				"a target gets one copy", "remove one of them")
		}
		seen[p.To] = true
	}
}
