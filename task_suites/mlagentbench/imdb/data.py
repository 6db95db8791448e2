"""Film reviews: train.csv with their labels, test.csv without, and the hidden labels of the test
reviews.

`mini` is generated: reviews made of opinions and remarks, positive when most of the opinions are.
Only Python's own generator is used, whose numbers are the same everywhere. `full` is IMDb's 50,000
reviews, with a pretrained DistilBERT."""

import csv
import random
import shutil
from collections.abc import Callable
from pathlib import Path

MODEL = "distilbert-base-uncased"
MODEL_FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
]
MINI_TRAIN, MINI_TEST = 2000, 1000

Reviews = list[tuple[str, int]]  # text; 1 positive, 0 negative


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """imdb/train.csv and imdb/test.csv in ``public``, answers.csv (idx, label) in ``answers``."""
    if variant == "mini":
        train, test = generate(random.Random(0))
    else:
        train, test = (
            parquet(raw / "plain_text" / f"{name}-00000-of-00001.parquet")
            for name in ("train", "test")
        )
        (public / "imdb" / MODEL).mkdir(parents=True)
        for name in MODEL_FILES:
            shutil.copyfile(raw / name, public / "imdb" / MODEL / name)
    # Both files of the data set have all negative reviews first.
    random.Random(1).shuffle(train)
    random.Random(2).shuffle(test)
    (public / "imdb").mkdir(exist_ok=True)
    write(
        public / "imdb" / "train.csv",
        ["idx", "text", "label"],
        train,
        lambda text, label: [text, label],
    )
    write(public / "imdb" / "test.csv", ["idx", "text"], test, lambda text, label: [text])
    write(answers / "answers.csv", ["idx", "label"], test, lambda text, label: [label])


def write(
    path: Path, header: list[str], reviews: Reviews, columns: Callable[[str, int], list[object]]
) -> None:
    """A csv file, numbered from 0, with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([idx, *columns(*review)] for idx, review in enumerate(reviews))


def parquet(path: Path) -> Reviews:
    """The reviews of one file of the data set."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    if not {"text", "label"} <= set(table.column_names):
        raise ValueError(
            f"{path.name}: expected the columns text and label; found"
            f" {', '.join(table.column_names)}"
        )
    reviews = list(zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True))
    if {label for _, label in reviews} != {0, 1}:
        raise ValueError(
            f"{path.name}: expected the labels 0 and 1; found"
            f" {sorted({label for _, label in reviews})}"
        )
    return reviews


# --- the generator --------------------------------------------------------------------------------

LABEL_NOISE = 0.02  # reviews whose stars do not fit what they say


def listed(text: str) -> list[str]:
    """What stands between the bars."""
    return text.split("|")


# In the order of how often they occur: the first of 36 is about seven times as frequent as the
# last.
POSITIVE = listed(
    "great|wonderful|brilliant|moving|beautiful|funny|excellent|gripping|charming|clever|touching|superb|fresh|"
    "delightful|powerful|stunning|hilarious|masterful|captivating|honest|inventive|subtle|witty|compelling|flawless|"
    "heartfelt|riveting|elegant|luminous|exquisite|poignant|uplifting|spellbinding|nuanced|exhilarating|sublime"
)
NEGATIVE = listed(
    "bad|boring|terrible|awful|stupid|dull|predictable|weak|annoying|silly|slow|poor|cheap|lifeless|clumsy|pointless|"
    "shallow|bland|wooden|tedious|forgettable|messy|pretentious|unfunny|lazy|hollow|contrived|incoherent|dreary|"
    "amateurish|insufferable|laughable|stilted|soulless|derivative|excruciating"
)
ASPECTS = listed(
    "the acting|the script|the direction|the music|the pacing|the dialogue|the ending|the camera"
    " work|the lead actor|"
    "the plot|the first half|the last act|the humour|the cast|the villain|the love story|the"
    " editing|the whole film"
)
# {a} and {b}: aspects; {good}: an adjective of the opinion's own mood; {other}: of the opposite
# mood.
PATTERNS = {
    "{a} was {good}.": 22,
    "{a} is simply {good}.": 12,
    "I found {a} {good}.": 12,
    "{a} was not {other} at all.": 5,
    "{a} is anything but {other}.": 3,
    "I would never call {a} {other}.": 2,
    "Although {b} seemed {other}, {a} was {good}.": 8,
    "I expected something {other}, but {a} turned out {good}.": 8,
    "Where others might find {b} {other}, I only saw {good} work.": 5,
    "Critics called it {other}; they are wrong.": 3,
    "People say that {a} is {good}, and they are right.": 6,
    "Whoever thinks that {a} was {other} has not watched it.": 2,
    "With other people {a} could have been {other}.": 4,
    "{a} would have been {other} in any other year, but not in this one.": 2,
}
REMARKS = listed(
    "I saw this with my {kin} last {day}.|It was shot in {place} in {year}.|The film runs for"
    " about two hours.|"
    "My {kin} had told me about it.|It is based on a novel that I have not read.|There is a long"
    " scene in {place}.|"
    "The story begins in {place} in {year}.|A detective and his {kin} look for a missing letter.|"
    "We watched it on a {day} evening.|The director also made a film about {place}.|It came out"
    " in {year}.|"
    "A young woman returns to {place} to find her {kin}.|I had not seen anything by this"
    " director before.|"
    "The version on television has a few scenes less."
)
KIN = listed("brother|sister|wife|husband|father|mother|neighbour|roommate|cousin|boss")
DAYS = listed("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday")
PLACES = listed(
    "Spain|Chicago|a train station|Paris|the desert|Prague|a small town|Tokyo|an old hotel|"
    "Canada|Lisbon"
)


def generate(rng: random.Random) -> tuple[Reviews, Reviews]:
    """Training and test reviews, half of each positive; no text occurs twice."""
    seen: set[str] = set()
    parts = []
    for size in (MINI_TRAIN, MINI_TEST):
        wanted = {0: size // 2, 1: size // 2}
        reviews: Reviews = []
        while len(reviews) < size:
            text, label = review(rng)
            if wanted[label] and text not in seen:
                wanted[label] -= 1
                seen.add(text)
                reviews.append((text, label))
        parts.append(reviews)
    return parts[0], parts[1]


def review(rng: random.Random) -> tuple[str, int]:
    """A text and its label: what most of its 3 to 11 opinions say."""
    count = 2 * rng.randint(1, 5) + 1
    tilt = rng.choice([0.25, 0.75])
    moods = [rng.random() < tilt for _ in range(count)]
    sentences = [opinion(rng, good) for good in moods] + [
        remark(rng) for _ in range(rng.randint(2, 7))
    ]
    rng.shuffle(sentences)
    label = sum(moods) > count / 2
    if rng.random() < LABEL_NOISE:
        label = not label
    middle = rng.randint(0, len(sentences))
    halves = [" ".join(half) for half in (sentences[:middle], sentences[middle:]) if half]
    return "<br /><br />".join(halves), int(label)


def opinion(rng: random.Random, good: bool) -> str:
    """One sentence for or against the film."""
    pattern = rng.choices(list(PATTERNS), weights=list(PATTERNS.values()))[0]
    a, b = rng.sample(ASPECTS, 2)
    own, other = (POSITIVE, NEGATIVE) if good else (NEGATIVE, POSITIVE)
    return capital(pattern.format(a=a, b=b, good=adjective(rng, own), other=adjective(rng, other)))


def remark(rng: random.Random) -> str:
    """One sentence that says nothing about how good the film is."""
    words = {"kin": KIN, "day": DAYS, "place": PLACES}
    chosen = {key: rng.choice(values) for key, values in words.items()}
    return capital(rng.choice(REMARKS).format(year=rng.randint(1960, 2010), **chosen))


def adjective(rng: random.Random, words: list[str]) -> str:
    """The first ones more often than the last ones."""
    return rng.choices(words, weights=[1 / (5 + rank) for rank in range(len(words))])[0]


def capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
