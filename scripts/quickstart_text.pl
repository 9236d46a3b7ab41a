#!/usr/bin/env perl
# Prints the quickstart's text as JSON lines {"id", "text"}, a chapter each: the six novels of Jane Austen and the King
# James Bible. The novels are in the data file of Debian's r-cran-janeaustenr, which is read here without R. The Bible
# is the output of Debian's bible-kjv.
#   usage: bible -f gen1:1-rev22:21 | quickstart_text.pl Rdata.rdb >text.jsonl
use strict;
use warnings;
use Compress::Zlib;

# The file is what R's lazyLoadDB reads: for each object a 4-byte big-endian length and a zlib stream of that length
# when inflated. Each stream is R's binary (XDR) serialization of one character vector, a line per string.
sub novels {
    my ($path) = @_;
    open(my $file, '<:raw', $path) or die "cannot open $path: $!\n";
    my $bytes = do { local $/; <$file> };
    my @novels;
    my $position = 0;
    while ($position < length $bytes) {
        my $size = unpack('N', substr($bytes, $position, 4));
        my $rest = substr($bytes, $position + 4);
        my $before = length $rest;
        my ($stream) = inflateInit();
        my ($serialized, $status) = $stream->inflate($rest);    # takes what it used off $rest
        die "$path: no zlib stream of $size bytes at $position\n"
          if $status != Z_STREAM_END || length $serialized != $size;
        $position += 4 + $before - length $rest;
        push @novels, [strings($serialized, $path)];
    }
    return @novels;
}

# "X\n", version, writer, minimal reader; version 3 adds the native encoding. Then type 0x10 (character vector), its
# length, and for each string flags (low byte 9), length, bytes.
sub strings {
    my ($data, $path) = @_;
    my ($magic, $version) = unpack('a2 N', $data);
    die "$path: not R's XDR serialization\n" if $magic ne "X\n";
    my $at = 14;
    $at += 4 + unpack('N', substr($data, $at, 4)) if $version == 3;
    my ($type, $count) = unpack('N N', substr($data, $at, 8));
    die "$path: not a character vector (type $type)\n" if ($type & 0xff) != 0x10;
    $at += 8;
    my @lines;
    for (1 .. $count) {
        my ($flags, $length) = unpack('N N', substr($data, $at, 8));
        die "$path: no string at offset $at\n" if ($flags & 0xff) != 9;
        my $line = substr($data, $at + 8, $length);
        if ($flags & 0x4000) { utf8::upgrade($line) }    # marked Latin-1
        else                 { utf8::decode($line) }
        push @lines, $line;
        $at += 8 + $length;
    }
    return @lines;
}

sub print_document {
    my ($id, @paragraphs) = @_;
    return unless @paragraphs;
    my $text = join("\n", @paragraphs);
    $text =~ s/(["\\])/\\$1/g;
    $text =~ s/\n/\\n/g;
    $text =~ s/\t/ /g;
    print qq({"id": "$id", "text": "$text"}\n);
}

# A chapter is a document. The lines of a paragraph are joined. Headings and the underscores of italics are left out.
sub print_novel {
    my (@lines) = @_;
    my ($title) = grep { /\S/ } @lines;
    my ($chapter, @paragraphs) = (0);
    my $paragraph = '';
    my $end_paragraph = sub {
        push @paragraphs, $paragraph if $chapter > 0 && $paragraph ne '';
        $paragraph = '';
    };
    for my $line (@lines) {
        $line =~ s/^\s+|\s+$//g;
        $line =~ s/_//g;
        if ($line =~ /^chapter\s+[ivxlc\d]+\.?$/i) {
            $end_paragraph->();
            print_document(lc("$title/$chapter"), @paragraphs);
            @paragraphs = ();
            ++$chapter;
        }
        elsif ($line eq '') { $end_paragraph->() }
        elsif ($line =~ /^(volume\s+[ivx]+|finis|the end)\.?$/i) { }
        else { $paragraph .= ($paragraph eq '' ? '' : ' ') . $line }
    }
    $end_paragraph->();
    print_document(lc("$title/$chapter"), @paragraphs);
}

# Lines "Ge1:1 In the beginning ..."; a chapter is a document, a verse a paragraph.
sub print_bible {
    my ($input) = @_;
    my ($chapter, @verses) = ('');
    while (my $line = <$input>) {
        chomp $line;
        my ($here, $verse) = $line =~ /^(\w+?\d+):\d+ (.*\S)/ or next;
        if ($here ne $chapter) {
            print_document("bible/$chapter", @verses);
            ($chapter, @verses) = ($here);
        }
        push @verses, $verse;
    }
    print_document("bible/$chapter", @verses);
}

die "usage: bible -f gen1:1-rev22:21 | $0 Rdata.rdb\n" if @ARGV != 1 || -t STDIN;
binmode(STDOUT, ':encoding(UTF-8)');
print_novel(@$_) for novels($ARGV[0]);
print_bible(*STDIN);
