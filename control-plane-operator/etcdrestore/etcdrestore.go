// SPDX-License-Identifier: Apache-2.0

// Package etcdrestore creates the data of an etcd member from a snapshot on standard input. Each member is created from
// the same snapshot, with the same token and member list. The members therefore have matching IDs and form one cluster
// from the start, and none of them has to copy the data of another.
package etcdrestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

const (
	// workFolder holds data that is not complete yet.
	workFolder = "restore"
	// memberFolder is etcd's directory in its data directory.
	memberFolder = "member"
)

// Member describes the member to create, its cluster and its location.
type Member struct {
	// Namespace is the hosted namespace, Name the pod of the member, and Members the pods of all members.
	Namespace, Name string
	Members         []string
	// DataDir is etcd's data directory, the root of its volume.
	DataDir string
	// RevisionBump is added to the revision of the snapshot, so that watchers of the lost cluster never see revisions
	// decrease. All members use the same value.
	RevisionBump uint64
}

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	var m Member
	cmd := &cobra.Command{
		Use:   "restore-etcd",
		Short: "Makes the data of a member of etcd from a snapshot on standard input",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.Restore(cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&m.Namespace, "namespace", "", "Hosted namespace, from which the members' addresses and the cluster token are derived")
	cmd.Flags().StringVar(&m.Name, "member", "", "Pod of the member")
	cmd.Flags().StringSliceVar(&m.Members, "members", nil, "Pods of all members")
	cmd.Flags().StringVar(&m.DataDir, "data-dir", etcd.DataDir, "etcd's data folder")
	cmd.Flags().Uint64Var(&m.RevisionBump, "revision-bump", 0, "Number to add to the revisions of the snapshot, the same for all members (required)")
	if err := cmd.MarkFlagRequired("revision-bump"); err != nil {
		panic(err) // A missing flag is a programming error, which the first run shows.
	}
	return cmd
}

// Restore reads the complete snapshot, creates the data in a work directory, and moves it into place in one step: a
// volume has all of the data or none. A volume with data is not changed.
func (m Member) Restore(from io.Reader) error {
	target, work := filepath.Join(m.DataDir, memberFolder), filepath.Join(m.DataDir, workFolder)
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("volume of %s: %s has data already, which a restore would destroy", m.Name, target)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing what an earlier restore left: %w", err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return fmt.Errorf("making room for the snapshot: %w", err)
	}
	file := filepath.Join(work, "snapshot.db")
	if err := save(file, from); err != nil {
		return err
	}
	made := filepath.Join(work, "data")
	if err := snapshot.NewV3(zap.NewNop()).Restore(m.config(file, made)); err != nil {
		return fmt.Errorf("restoring member %s from the snapshot: %w", m.Name, err)
	}
	if err := os.Rename(filepath.Join(made, memberFolder), target); err != nil {
		return fmt.Errorf("putting the data of member %s in its place: %w", m.Name, err)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing the snapshot: %w", err)
	}
	return nil
}

func (m Member) config(file, made string) snapshot.RestoreConfig {
	var cluster []string
	for _, pod := range m.Members {
		cluster = append(cluster, pod+"="+etcd.PeerURL(m.Namespace, pod))
	}
	return snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: made, Name: m.Name, PeerURLs: []string{etcd.PeerURL(m.Namespace, m.Name)},
		InitialCluster: strings.Join(cluster, ","), InitialClusterToken: m.Namespace, RevisionBump: m.RevisionBump, MarkCompacted: true,
	}
}

func save(path string, from io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("making room for the snapshot: %w", err)
	}
	_, err = io.Copy(file, from)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	return nil
}
