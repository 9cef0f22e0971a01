// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/api/util/nodeupdate"
	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

// Annotations of the Node, and the values of the state annotation.
const (
	desiredAnnotation = nodeupdate.Desired
	currentAnnotation = nodeupdate.Current
	stateAnnotation   = nodeupdate.State
	messageAnnotation = nodeupdate.Message
	desiredAddress    = nodeupdate.DesiredAddress
	currentAddress    = nodeupdate.CurrentAddress
	addressMessage    = nodeupdate.AddressMessage

	working    = nodeupdate.Working
	done       = nodeupdate.Done
	rolledBack = nodeupdate.RolledBack
	failed     = nodeupdate.Failed
)

// maxMessage limits the length of an annotation, since a message may come from a registry.
const maxMessage = 1000

// follower updates the machine to the configuration in the annotation of its Node.
type follower struct {
	host *host.Host
	node *cluster.Node
	// arch is the architecture of the machine, as in GOARCH.
	arch string
	// ready is the timeout for the Node to become Ready. alive is how long the kubelet must have run by then. poll is the
	// interval of the checks. retryFirst and retryMax are the first and the longest delay before a retry.
	ready, alive, poll   time.Duration
	retryFirst, retryMax time.Duration
	// watchMax is the longest delay before an unreachable API server is tried again.
	watchMax time.Duration
	// become replaces this process with the newer node-agent. It returns only with an error.
	become func() error
}

func followCommand(h *host.Host) *cobra.Command {
	f := &follower{
		host: h, arch: architecture, alive: 20 * time.Second, poll: 2 * time.Second, retryFirst: 10 * time.Second, retryMax: 5 * time.Minute, watchMax: time.Minute,
		become: func() error {
			return syscall.Exec(nodeplan.Program, []string{nodeplan.Program, "follow"}, os.Environ()) //nolint:gosec // It is this program, newer, checked when it was fetched.
		},
	}
	cmd := &cobra.Command{
		Use: "follow", Short: "Update this node to the configuration that its annotation names", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.node = &cluster.Node{Host: h, Name: nodeName(h)}
			return f.run(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&f.ready, "ready-timeout", 10*time.Minute, "how long the Node may take to become Ready with a new configuration before it is rolled back")
	return cmd
}

// run follows the annotations of the Node until the machine stops.
func (f *follower) run(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	seen := make(chan cluster.Annotations, 1)
	go f.watch(ctx, seen)
	var latest cluster.Annotations
	wait, again := f.retryFirst, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-seen:
			if latest != nil && (latest[desiredAnnotation] != now[desiredAnnotation] || latest[desiredAddress] != now[desiredAddress]) {
				wait = f.retryFirst
			} else if again != nil {
				latest = now
				continue // A retry is scheduled; the node-agent's own annotations must not trigger it earlier.
			}
			latest = now
		case <-again:
		}
		again = nil
		if err := f.applyAnnotations(ctx, latest); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.host.Say("trying again in %s: %v", wait, err)
			again = time.After(wait)
			wait = min(2*wait, f.retryMax)
			continue
		}
		wait = f.retryFirst
	}
}

// watch sends the annotations of the Node to the channel; a newer value replaces an unread one.
func (f *follower) watch(ctx context.Context, seen chan cluster.Annotations) {
	wait := f.retryFirst
	for ctx.Err() == nil {
		err := f.node.Watch(ctx, func(now cluster.Annotations) {
			wait = f.retryFirst
			select {
			case <-seen: // Drop the unread value.
			default:
			}
			annotations := cluster.Annotations{}
			maps.Copy(annotations, now)
			seen <- annotations
		})
		if err == nil {
			continue
		}
		if !f.host.Exists(cluster.Kubeconfig) {
			wait = f.retryFirst // The kubelet will join soon.
		}
		if ctx.Err() == nil {
			f.host.Say("cannot follow the Node, trying again in %s: %v", wait, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, f.watchMax)
	}
}

// applyAnnotations applies the annotations of the Node, and reports the result on the Node. It is retried after an error. An
// unreachable address does not block a new configuration.
func (f *follower) applyAnnotations(ctx context.Context, now cluster.Annotations) error {
	moved := f.move(ctx, now)
	return errors.Join(moved, f.configure(ctx, now))
}

// configure updates the machine to the configuration in the annotations of the Node.
func (f *follower) configure(ctx context.Context, now cluster.Annotations) error {
	state, err := f.settled(ctx)
	if err != nil {
		return err
	}
	current, err := currentHash(f.host)
	if err != nil {
		return err
	}
	desired := now[desiredAnnotation]
	// Removing the state annotation requests another attempt.
	if _, told := now[stateAnnotation]; state.Phase != "" && (state.Hash != desired || !told) {
		if err := update.Forget(f.host); err != nil {
			return err
		}
		state = update.State{}
	}
	if desired == "" || desired == current || state.Phase != "" {
		return f.tell(ctx, now, current, state)
	}
	if err := f.take(ctx, now, current, desired); err != nil {
		return err
	}
	if state, err = f.settled(ctx); err != nil {
		return err
	}
	if current, err = currentHash(f.host); err != nil {
		return err
	}
	return f.tell(ctx, now, current, state)
}

// take prepares the desired configuration. If that fails, the machine is unchanged.
func (f *follower) take(ctx context.Context, now cluster.Annotations, current, desired string) error {
	if err := f.say(ctx, now, cluster.Annotations{currentAnnotation: current, stateAnnotation: working, messageAnnotation: ""}); err != nil {
		return err
	}
	f.host.Say("updating from configuration %s to %s", current, desired)
	if err := f.prepare(ctx, desired); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		problem := fmt.Errorf("configuration %s cannot be applied; nothing was changed: %w", desired, err)
		told := f.say(ctx, now, cluster.Annotations{currentAnnotation: current, stateAnnotation: failed, messageAnnotation: sentence(problem.Error())})
		if told != nil {
			f.host.Say("reporting the failure on the Node: %v", told)
		}
		return problem
	}
	return nil
}

// settle completes an interrupted update. The next event reports the result on the Node.
func (f *follower) settle(ctx context.Context) error {
	_, err := f.settled(ctx)
	return err
}

func (f *follower) settled(ctx context.Context) (update.State, error) {
	before, err := update.Load(f.host)
	if err != nil {
		return before, err
	}
	state, err := updating(f.host, f.healthy).Settle(ctx)
	if err != nil || !before.Underway() {
		return state, err
	}
	return state, f.removeOld(ctx)
}

// tell reports the current configuration on the Node when no update is in progress.
func (f *follower) tell(ctx context.Context, now cluster.Annotations, current string, state update.State) error {
	want := cluster.Annotations{currentAnnotation: current, stateAnnotation: done, messageAnnotation: ""}
	switch state.Phase {
	case update.RolledBack:
		want[stateAnnotation] = rolledBack
		want[messageAnnotation] = sentence(fmt.Sprintf("configuration %s was rolled back: %s", state.Hash, state.Message))
	case update.Failed:
		want[stateAnnotation] = failed
		want[messageAnnotation] = sentence(fmt.Sprintf("configuration %s was rolled back: %s", state.Hash, state.Message))
	}
	if _, known := now[currentAddress]; !known {
		at, err := goesBy(f.host)
		if err != nil {
			return err
		}
		want[currentAddress] = at.String()
	}
	return f.say(ctx, now, want)
}

// say writes the annotations that differ, and updates now with them.
func (f *follower) say(ctx context.Context, now, want cluster.Annotations) error {
	changes := cluster.Annotations{}
	for key, value := range want {
		if now[key] != value {
			changes[key] = value
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := f.node.Annotate(ctx, changes); err != nil {
		return fmt.Errorf("annotating Node %s: %w", f.node.Name, err)
	}
	maps.Copy(now, changes)
	return nil
}

// sentence shortens a message to the length of an annotation and makes it valid UTF-8. Otherwise the API server would
// not return it unchanged.
func sentence(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxMessage {
		return strings.ToValidUTF8(text[:maxMessage], "") + " ..."
	}
	return text
}
