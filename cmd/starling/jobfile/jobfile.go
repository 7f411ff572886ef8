// Package jobfile reads the job file that a command is given, with the keys that its flags change, and has the
// commands that make one. Package client/job defines the job file.
package jobfile

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/dataset/fetch"
)

// Load reads a job file, with its length in steps, after it has downloaded the data that has an address. All that is
// wrong with it is a wrong usage.
func Load(ctx context.Context, c *terminal.Console, path string, set []string) (*job.Job, error) {
	j, err := job.Read(path, set...)
	if err != nil {
		return nil, terminal.WithExit(err, terminal.ExitUsage)
	}
	return complete(ctx, c, j)
}

// LoadAll is Load for a file of one job, or of one for each of its experts.
func LoadAll(ctx context.Context, c *terminal.Console, path string, set []string) ([]*job.Job, error) {
	all, err := job.ReadAll(path, set...)
	if err != nil {
		return nil, terminal.WithExit(err, terminal.ExitUsage)
	}
	for i, j := range all {
		if all[i], err = complete(ctx, c, j); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// complete is a job with its data downloaded, and its length in steps.
func complete(ctx context.Context, c *terminal.Console, j *job.Job) (*job.Job, error) {
	say := func(text string) { fmt.Fprintln(os.Stderr, text) }
	if c.Quiet {
		say = nil
	}
	j, err := fetch.Data(ctx, j, say)
	if err == nil {
		err = j.CheckFiles()
	}
	if err == nil {
		watch, done := Tokenizing(ctx, c)
		j, err = dataset.InSteps(j, watch)
		done()
	}
	return j, terminal.WithExit(err, terminal.ExitUsage)
}

// SetFlags are the flags that give a command overrides, as a shell reads them, each behind a space.
func SetFlags(overrides []string) string {
	var b strings.Builder
	for _, o := range overrides {
		b.WriteString(" --set " + Word(o))
	}
	return b.String()
}

// Word is an argument of a command as a shell reads it: in quotes, if it has other characters than those of plain paths
// and settings.
func Word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/=+-"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
