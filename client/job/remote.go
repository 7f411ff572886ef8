package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// followers checks which servers the process of the run calls.
func (c *checker) followers() {
	const hook, on, server, experiment = "notify.webhook", "notify.on", "tracking.mlflow.uri", "tracking.mlflow.experiment"
	for _, to := range []struct{ path, address string }{{hook, c.Notify.Webhook}, {server, c.Tracking.MLflow.URI}} {
		if to.address != "" && !c.bad(to.path) && !isWeb(to.address) {
			c.report(to.path, CodeBadValue, fmt.Sprintf("%s: %q is no address", to.path, clip(to.address)),
				"it is that of a web server", "write it as http://HOST:PORT or https://HOST/PATH")
		}
	}
	for i, set := range c.Datasets {
		at := fmt.Sprintf("datasets.%d.sha256", i)
		switch digest, err := hex.DecodeString(set.SHA256); {
		case set.SHA256 == "" || c.bad(at):
		case !set.Remote():
			c.report(at, CodeBadValue, at+" is given for a file of this machine",
				"only what is downloaded is held against a digest", "remove it")
		case err != nil || len(digest) != sha256.Size || strings.ToLower(set.SHA256) != set.SHA256:
			c.report(at, CodeBadValue, fmt.Sprintf("%s: %q is no digest", at, clip(set.SHA256)),
				"a SHA-256 has 64 digits of 0 to 9 and a to f", "copy it from the place that offers the file")
		}
	}
	if c.Notify.Webhook == "" && c.Given(on) && !c.bad(hook, on) {
		c.report(on, CodeBadValue, on+" is given without "+hook, "nobody would be told", "add webhook, or remove on")
	}
	if c.Tracking.MLflow.URI == "" && c.Tracking.MLflow.Experiment != "" && !c.bad(server, experiment) {
		c.report(experiment, CodeBadValue, experiment+" is given without "+server, "no server would get the metrics",
			"add uri, or remove experiment")
	}
}

// isWeb reports whether a text is the address of something on a web server.
func isWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Remote reports whether the data set is a file on a web server.
func (d Dataset) Remote() bool { return isWeb(d.Path) }

// Cached is where a file of that digest lies once it is downloaded, in the cache of this user.
func (d Dataset) Cached() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "starling", "data", d.SHA256), err
}
