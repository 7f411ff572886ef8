package chain_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain"
)

const childHome = "STARLING_TEST_CHILD_HOME"

// TestMain runs a validator that prints every height if another test started the test binary with childHome set.
func TestMain(m *testing.M) {
	home := os.Getenv(childHome)
	if home == "" {
		os.Exit(m.Run())
	}
	v, err := chain.Start(context.Background(), config(home))
	if err == nil {
		err = heights(context.Background(), v, func(h int64) bool {
			fmt.Println(h)
			return true
		})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func config(home string) chain.Config {
	return chain.Config{Home: home, ChainID: "test", BlockTime: 50 * time.Millisecond}
}

// heights calls more with the height of every block until more returns false.
func heights(ctx context.Context, v *chain.Validator, more func(int64) bool) error {
	events, err := v.Client().Subscribe(ctx, "test", cmttypes.QueryForEvent(cmttypes.EventNewBlockHeader).String(), 100)
	if err != nil {
		return err
	}
	for {
		select {
		case e := <-events:
			if !more(e.Data.(cmttypes.EventDataNewBlockHeader).Header.Height) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	home := t.TempDir()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childHome+"="+home)
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	killed := 0
	for lines := bufio.NewScanner(out); killed < 5 && lines.Scan(); {
		if killed, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // returns that the process was killed
	genesis, err := os.ReadFile(filepath.Join(home, "config", "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}

	v, err := chain.Start(ctx, config(home))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	err = heights(ctx, v, func(h int64) bool {
		if h <= int64(killed) {
			t.Errorf("height %d after a kill at height %d", h, killed)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(home, "config", "genesis.json")); err != nil ||
		string(again) != string(genesis) {
		t.Errorf("the genesis changed over the restart (%v)", err)
	}
}

func TestFolderOfAnotherChain(t *testing.T) {
	home := t.TempDir()
	v, err := chain.Start(t.Context(), config(home))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Start(t.Context(), config(home)); err == nil {
		t.Error("two validators run over one folder")
	}
	v.Stop()
	c := config(home)
	c.ChainID = "other"
	if _, err := chain.Start(t.Context(), c); !errors.Is(err, chain.ErrOtherChain) {
		t.Errorf("got %v", err)
	}
}

func TestStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	v, err := chain.Start(ctx, config(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-v.Client().Quit()
	v.Stop()
}

// A validator that stops during a snapshot of its state completes the snapshot first.
func TestStopsDuringASnapshot(t *testing.T) {
	for range 5 {
		c := config(t.TempDir())
		c.SnapshotEvery = 1
		v, err := chain.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := heights(t.Context(), v, func(h int64) bool { return h < 4 }); err != nil {
			t.Fatal(err)
		}
		v.Stop()
	}
}

// A validator detects that its disk lost the last block, and without peers it changes nothing else.
func TestLostBlocks(t *testing.T) {
	home := t.TempDir()
	v, err := chain.Start(t.Context(), config(home))
	if err != nil {
		t.Fatal(err)
	}
	if err := heights(t.Context(), v, func(h int64) bool { return h < 3 }); err != nil {
		t.Fatal(err)
	}
	v.Stop()
	logs, err := filepath.Glob(filepath.Join(home, "data", "blockstore.db", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	info, err := os.Stat(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(logs[0], info.Size()-100); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := chain.Start(t.Context(), config(home)); !errors.Is(err, chain.ErrLost) {
			t.Errorf("%v", err)
		}
	}
}

// A state one height behind the blocks is normal after a kill. A state further behind is lost, and so is one without
// the stored response of an application that has executed the last block.
func TestLostState(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	v, err := chain.Start(t.Context(), config(home))
	if err != nil {
		t.Fatal(err)
	}
	if err := heights(t.Context(), v, func(h int64) bool { return h < 3 }); err != nil {
		t.Fatal(err)
	}
	v.Stop()
	forget(t, home, nil)
	if v, err = chain.Start(t.Context(), config(home)); err != nil {
		t.Fatal(err)
	}
	v.Stop()
	for name, more := range map[string]func(state.Store, state.State) error{
		"the answer": func(states state.Store, s state.State) error {
			return states.SaveFinalizeBlockResponse(s.LastBlockHeight, &abci.ResponseFinalizeBlock{AppHash: s.AppHash})
		},
		"two states": func(states state.Store, s state.State) error {
			s.LastBlockHeight--
			return states.Save(s)
		},
	} {
		lost := filepath.Join(t.TempDir(), "lost")
		if err := os.CopyFS(lost, os.DirFS(home)); err != nil {
			t.Fatal(err)
		}
		forget(t, lost, more)
		for range 2 {
			if _, err := chain.Start(t.Context(), config(lost)); !errors.Is(err, chain.ErrLost) {
				t.Errorf("without %s: %v", name, err)
			}
		}
	}
}

// forget rolls the state of a stopped validator back to before its latest block, and then calls more.
func forget(t *testing.T, home string, more func(state.Store, state.State) error) {
	t.Helper()
	open := func(name string) cmtdb.DB {
		db, err := cmtdb.NewDB(name, cmtdb.GoLevelDBBackend, filepath.Join(home, "data"))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	inStates, inBlocks := open("state"), open("blockstore")
	states := state.NewStore(inStates, state.StoreOptions{})
	_, _, err := state.Rollback(store.NewBlockStore(inBlocks), states, false)
	if err == nil && more != nil {
		var s state.State
		if s, err = states.Load(); err == nil {
			err = more(states, s)
		}
	}
	if err := errors.Join(err, inStates.Close(), inBlocks.Close()); err != nil {
		t.Fatal(err)
	}
}
