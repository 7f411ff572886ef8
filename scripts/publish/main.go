// Command publish makes a repository of releases that starling supervise reads:
//
//	go run ./scripts/publish key anna                                    # once for each person: anna and anna.pub
//	go run ./scripts/publish init REPOSITORY 2 online.pub anna.pub ben.pub eve.pub
//	go run ./scripts/publish add REPOSITORY v0.2.0 linux/amd64 dist/starling-v0.2.0-linux-amd64.tar.gz --rollout 24h
//	go run ./scripts/publish sign REPOSITORY anna                        # on the computer of each person
//	go run ./scripts/publish publish REPOSITORY online          # also every week, as the latest list
//
// Copy REPOSITORY/metadata and REPOSITORY/targets to a web server; REPOSITORY/next lacks signatures. Machines need
// metadata/root.json once.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/node/releases"
	"github.com/starling-network/starling/node/releases/publish"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: publish key FILE | init DIR THRESHOLD ONLINE.pub KEY.pub... | " +
	"add DIR VERSION OS/ARCH ARCHIVE [--upgrade NAME] [--from TIME] [--rollout DURATION] | sign DIR KEY | " +
	"publish DIR ONLINE")

func run(args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	f, rest := publish.Folder(args[1]), args[2:]
	switch name := args[0]; {
	case name == "key" && len(rest) == 0:
		return publish.NewKey(args[1])
	case name == "init" && len(rest) > 2:
		threshold, err := strconv.Atoi(rest[0])
		if err != nil {
			return errUsage
		}
		return f.Init(threshold, rest[1], rest[2:]...)
	case name == "add" && len(rest) > 2:
		return add(f, rest)
	case name == "sign" && len(rest) == 1:
		return f.Sign(rest[0])
	case name == "publish" && len(rest) == 1:
		return f.Publish(rest[0])
	}
	return errUsage
}

func add(f publish.Folder, args []string) error {
	n := releases.Notes{Version: args[0]}
	var there bool
	if n.OS, n.Arch, there = strings.Cut(args[1], "/"); !there {
		return errUsage
	}
	flags := flag.NewFlagSet("add", flag.ContinueOnError)
	flags.StringVar(&n.Upgrade, "upgrade", "", "upgrade of the chain that the program has and those before it lack")
	from := flags.String("from", "", "time of RFC 3339 from which machines switch")
	rollout := flags.Duration("rollout", 0, "within which they all do")
	if err := flags.Parse(args[3:]); err != nil {
		return err
	}
	if *from != "" {
		var err error
		if n.From, err = time.Parse(time.RFC3339, *from); err != nil {
			return err
		}
	}
	n.Rollout = uint64(*rollout / time.Second)
	return f.Add(args[2], n)
}
