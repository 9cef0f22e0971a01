// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/test/maas-simulator/admin"
	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/metadata"
	"github.com/openshift/hypershift/test/maas-simulator/seeds"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// serveOptions holds the flags of serve.
type serveOptions struct {
	listen, adminListen, metadataURL string
	seed, stateDir, state, keys      string
	admins, users                    []string
	version, boot                    string
	speed                            float64
	random                           uint64
	durations                        lifecycle.Durations
	cost                             load.Cost
	netns                            netnsOptions
}

func serveCommand() *cobra.Command {
	o := &serveOptions{durations: lifecycle.Realistic}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API and the metadata endpoint",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.boot != "none" && !cmd.Flags().Changed("deploy-duration") {
				// The backend's installation takes real time.
				o.durations.Deploy = 0
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:5240", "address of the API and the metadata endpoint")
	f.StringVar(&o.adminListen, "admin-listen", "", "address of the admin port, which must not be public (empty: none)")
	f.StringVar(&o.metadataURL, "metadata-url", "", "URL of the metadata endpoint as machines see it (default: from --listen)")
	f.StringVar(&o.seed, "seed", "", "inventory as JSON, as MAAS prints it; used until there is state (default: a built-in demo site)")
	f.StringVar(&o.stateDir, "state-dir", "", "folder for state and keys: sets --state and --keys, and writes <user>.key files")
	f.StringVar(&o.state, "state", "", "file that keeps the state over restarts (empty: memory only)")
	f.StringVar(&o.keys, "keys", "", "JSON file of API keys by user; missing keys are made up and written to it")
	f.StringSliceVar(&o.users, "users", []string{"admin", "alice"}, "users that there must be")
	f.StringSliceVar(&o.admins, "admins", []string{"admin"}, "users with administrator's rights, besides those of the seed")
	f.StringVar(&o.version, "maas-version", "3.4", "version to behave as: 3.2 to 3.7, or main")
	f.StringVar(&o.boot, "boot", "none", "how machines boot: none (states only) or netns (network namespaces)")
	f.Float64Var(&o.speed, "speed", 1, "divides every duration")
	f.Uint64Var(&o.random, "random-seed", 1, "makes ids, keys and faults come out the same")
	f.DurationVar(&o.durations.Power, "power-duration", o.durations.Power, "time until a power action is seen")
	f.DurationVar(&o.durations.Deploy, "deploy-duration", o.durations.Deploy, "time of a deployment (with --boot=netns: added to the installation)")
	f.DurationVar(&o.durations.Commission, "commission-duration", o.durations.Commission, "time of commissioning")
	f.DurationVar(&o.durations.Test, "test-duration", o.durations.Test, "time of hardware tests")
	f.DurationVar(&o.durations.Erase, "erase-duration", o.durations.Erase, "time of disk erasing")
	f.DurationVar(&o.durations.Rescue, "rescue-duration", o.durations.Rescue, "time until rescue mode is there")
	f.DurationVar(&o.durations.DeployTimeout, "deploy-timeout", o.durations.DeployTimeout, "time after which a deployment has failed")
	f.DurationVar(&o.durations.ReleaseTimeout, "release-timeout", o.durations.ReleaseTimeout, "time after which a release has failed")
	f.DurationVar(&o.durations.NodeTimeout, "node-timeout", o.durations.NodeTimeout, "time after which commissioning, tests and rescue mode have failed")
	f.IntVar(&o.cost.Workers, "workers", 0, "requests that are worked on at once (0: the time of requests is counted without waiting)")
	f.DurationVar(&o.cost.Request, "request-time", 0, "time that a request takes, besides its machines")
	f.DurationVar(&o.cost.Machine, "machine-time", 0, "time for each machine that an answer prints (a region of MAAS 3.4: about 25ms)")
	o.netns.addFlags(f)
	return cmd
}

const headerTimeout = 10 * time.Second

// run serves until the context ends.
func (o *serveOptions) run(ctx context.Context) error {
	sim, err := o.simulator()
	if err != nil {
		return err
	}
	servers := []*http.Server{{Addr: o.listen, Handler: sim, ReadHeaderTimeout: headerTimeout}}
	if o.adminListen != "" {
		servers = append(servers, &http.Server{Addr: o.adminListen, Handler: admin.New(sim), ReadHeaderTimeout: headerTimeout})
	}
	failures := make(chan error, len(servers))
	for _, server := range servers {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", server.Addr)
		if err != nil {
			return errors.Join(fmt.Errorf("cannot serve on %s: choose another address: %w", server.Addr, err), sim.Close())
		}
		go func() { failures <- server.Serve(listener) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if err := <-failures; !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
		}
		cancel()
	}()
	log.Printf("serving MAAS %s on http://%s/MAAS", o.version, o.listen)
	sim.Run(ctx)
	for _, server := range servers {
		if err := server.Close(); err != nil {
			log.Print(err)
		}
	}
	return sim.Close()
}

func (o *serveOptions) simulator() (*simulator.Simulator, error) {
	if err := o.place(); err != nil {
		return nil, err
	}
	options := simulator.Options{
		StateFile: o.state, Version: o.version, Durations: o.durations.Faster(o.speed), RandomSeed: o.random, Log: log.Printf,
		MetadataURL: o.metadataURL, Seed: seeds.Demo, Cost: o.cost,
	}
	if o.speed <= 0 {
		return nil, fmt.Errorf("--speed=%v must be greater than 0", o.speed)
	}
	if options.MetadataURL == "" {
		options.MetadataURL = "http://" + o.listen + metadata.Root
	}
	var err error
	if o.seed != "" {
		if options.Seed, err = os.ReadFile(o.seed); err != nil {
			return nil, fmt.Errorf("reading --seed: %w", err)
		}
	}
	if options.Backend, err = o.backend(); err != nil {
		return nil, err
	}
	if options.Users, err = o.readUsers(); err != nil {
		return nil, err
	}
	sim, err := simulator.New(options)
	if err != nil {
		return nil, err
	}
	return sim, o.writeKeys(sim.Keys())
}

// place sets the default paths of the state and the keys.
func (o *serveOptions) place() error {
	if o.stateDir == "" {
		return nil
	}
	if err := os.MkdirAll(o.stateDir, 0o700); err != nil {
		return fmt.Errorf("making --state-dir: %w", err)
	}
	if o.state == "" {
		o.state = filepath.Join(o.stateDir, "state.jsonl")
	}
	if o.keys == "" {
		o.keys = filepath.Join(o.stateDir, "keys.json")
	}
	return nil
}

func (o *serveOptions) backend() (boot.Backend, error) {
	switch o.boot {
	case "none":
		return &boot.None{}, nil
	case "netns":
		return o.netns.backend()
	}
	return nil, fmt.Errorf("--boot=%s is not known: use none or netns", o.boot)
}

// readUsers merges the users of the flags with those of the key file.
func (o *serveOptions) readUsers() ([]simulator.User, error) {
	keys := map[string]string{}
	if o.keys != "" {
		raw, err := os.ReadFile(o.keys)
		if err == nil {
			err = json.Unmarshal(raw, &keys)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading --keys %s: %w", o.keys, err)
		}
	}
	for _, name := range append(o.users, o.admins...) {
		if _, known := keys[name]; !known {
			keys[name] = ""
		}
	}
	users := []simulator.User{}
	for name, key := range keys {
		user := simulator.User{Name: name, Key: key}
		for _, admin := range o.admins {
			user.Admin = user.Admin || admin == name
		}
		users = append(users, user)
	}
	return users, nil
}

// writeKeys writes the keys to files that only the current user can read.
func (o *serveOptions) writeKeys(keys map[string]string) error {
	if o.keys == "" {
		if o.state == "" {
			log.Print("no --keys file: the API keys that were made up are not kept anywhere; give --keys or --state-dir")
		}
		return nil
	}
	raw, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding API keys: %w", err)
	}
	if err := os.WriteFile(o.keys, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing API keys: %w", err)
	}
	if o.stateDir == "" {
		return nil
	}
	for name, key := range keys {
		file := filepath.Join(o.stateDir, filepath.Base(name)+".key")
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("writing the API key of %s: %w", name, err)
		}
	}
	return nil
}
