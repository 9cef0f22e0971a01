// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/machine"
)

// retryDelay is the delay before the machine repeats a step that failed.
const retryDelay = 2 * time.Second

// bootIgnition runs in a machine with Ignition before its services start. At the first boot, it configures the machine
// with the user-data from MAAS. At later boots, it only configures the resolver.
func bootIgnition(ctx context.Context, system *machine.System) error {
	var spec boot.Spec
	if err := json.Unmarshal(system.Config.BootData, &spec); err != nil {
		return fmt.Errorf("reading the machine's description: %w", err)
	}
	if err := configureResolver(spec); err != nil {
		return err
	}
	if _, err := os.Stat(firstBootDone); err == nil {
		say("booting again as instance %s", spec.SystemID)
		return nil // A configured machine boots without MAAS, as with cloud-init.
	}
	if err := firstBoot(ctx, newMetadata(spec), system.Config.Env); err != nil {
		return err
	}
	return markFirstBootDone(spec.SystemID)
}

// firstBoot runs the steps of cloud-init and Ignition. Each step begins after the previous one has succeeded.
func firstBoot(ctx context.Context, metadata *metadata, env []string) error {
	var userData []byte
	steps := []struct {
		what string
		run  func() error
	}{
		{"setting the host name", func() error { return setHostname(ctx, metadata) }},
		{"reporting init-network", func() error { return metadata.report(ctx, "init-network", nil) }},
		{"fetching the user-data", func() (err error) { userData, err = metadata.userData(ctx); return err }},
		{"telling MAAS that the machine is up", func() error { return metadata.signalOK(ctx) }},
		{"applying the user-data", func() error { return applyUserData(ctx, userData, env) }},
		{"reporting modules-final", func() error { return metadata.report(ctx, "modules-final", nil) }},
	}
	for _, step := range steps {
		if err := retry(ctx, step.what, step.run); err != nil {
			return err
		}
	}
	return nil
}

// retry runs a step until it succeeds, because a server may be down or not yet ready.
func retry(ctx context.Context, what string, step func() error) error {
	for {
		err := step()
		if err == nil {
			return nil
		}
		say("%s: %v; trying again in %s", what, err, retryDelay)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-time.After(retryDelay):
		}
	}
}

// say writes to the console.
func say(format string, args ...any) {
	fmt.Printf("%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

func configureResolver(spec boot.Spec) error {
	var content strings.Builder
	if spec.Domain != "" {
		fmt.Fprintf(&content, "search %s\n", spec.Domain)
	}
	for _, server := range spec.Nameservers {
		fmt.Fprintf(&content, "nameserver %s\n", server)
	}
	return os.WriteFile("/etc/resolv.conf", []byte(content.String()), 0o644)
}

// setHostname sets the hostname that MAAS has for the machine.
func setHostname(ctx context.Context, metadata *metadata) error {
	fqdn, err := metadata.get(ctx, "meta-data/local-hostname")
	if err != nil {
		return err
	}
	full := strings.TrimSpace(string(fqdn))
	short, _, _ := strings.Cut(full, ".")
	if short == "" {
		return errors.New("MAAS says that the machine has no name")
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s %s\n", full, short)
	return errors.Join(
		os.WriteFile("/etc/hostname", []byte(short+"\n"), 0o644),
		os.WriteFile("/etc/hosts", []byte(hosts), 0o644),
	)
}

func applyUserData(ctx context.Context, userData []byte, env []string) error {
	switch {
	case isIgnition(userData):
		return ignite(ctx, userData, env)
	case len(strings.TrimSpace(string(userData))) == 0:
		say("there is no user-data")
	default:
		say("the user-data is not an Ignition config, and this image understands no other: nothing is configured")
	}
	return nil
}

// isIgnition reports whether the user-data is an Ignition config. Other user-data is a cloud-config, a script and the
// like.
func isIgnition(userData []byte) bool {
	var config struct {
		Ignition *struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	return json.Unmarshal(userData, &config) == nil && config.Ignition != nil
}

func markFirstBootDone(instance string) error {
	if err := os.MkdirAll(filepath.Dir(firstBootDone), 0o755); err != nil {
		return err
	}
	return os.WriteFile(firstBootDone, []byte(instance+"\n"), 0o644)
}
