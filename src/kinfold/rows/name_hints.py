"""What the name of a column hints at, in some languages: a weak extra to what its values say.

A word stands by itself (`age` is no part of `agency`), with a star behind it for whatever it starts (`educ*`: EDUC1,
education), in front of it for whatever it ends (`*nummer`: Kundennummer), or both for any part of a name, as scripts
without spaces need. Names are read without accents, case and signs: `PatientId`, `patient-id` and `PATIENT ID` are one.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import cache

WORDS = {
    "number": """
        id ids identifier* identif* uuid guid ssn passport* iban mrn pid hid hhid nhs nino bsn cpf dni nif insurance_no
        insuranceno *nummer *nummern kennung* matric* personal*nr *nr lfdnr serial* idx rownum expediente numero_de
        *番号* *编号* *番號* *번호* *номер* *идентиф*""",
    "person": """
        name *name nom prenom nombre apellido* cognome nome sobrenome naam *naam nazwisko imie navn namn
        e_mail* email* mail phone* *phone telefon* telephone* tel mobile handy* address* adress* direccion* indirizzo*
        endereco* adres street* strasse* rue calle ip *氏名* *姓名* *名前* *住所* *電話* *имя* *фамилия*
        lat lon lng latitude longitude gps* account* konto* *konto""",
    "household": """
        hid hhid household* haushalt* hogar* menage* foyer* huishouden* famiglia* familia* family* hushall* hh
        *世帯*""",
    "weight": """
        weight* *weight *weights wgt* *wgt wt wts w gewicht* *gewicht *gewichte hochrechnung* poids* ponder* peso* pesi
        fexp* expansion* factor_exp* vikt waga vaha *ウェイト* *権重* *权重* *加权*""",
    "sampling": """
        sampl* *wgt* ponder* hochrechnung* fexp* factor_exp* expansion* design* survey* stichprobe* echantillon* muestr*
        amostr* campion* steekproef* calib* final* *標本* *抽样*""",
    "body": "body* birth* koerper* korper* geburt* corp* naissance* nacer* kg lb lbs bmi gross* net*",
    "age": "age ages *_age alter lebensalter edad eta idade leeftijd wiek alder ika yas *年齢* *年龄* *나이* *возраст*",
    "birth": "birth* dob geburt* naiss* nacim* nascit* nascim* geboorte* urodz* fodsel* *生年* *出生* *рожд*",
    "sex": """
        sex gender geschlecht sexe sexo sesso genero genre geslacht kon kjonn plec sukupuoli *性別* *性别* *성별*
        пол""",
    "country": """
        country* nation* citizen* staatsang* pays pais paese herkunft* native* kraj *国籍* *国家* *страна*""",
    "place": """
        region* zip* postal* postcode* post_code plz postleit* code_postal codepostal cp cap city* town* stadt* ort
        *wohnort
        gemeinde* commune* ville* ciudad* municip* comune* citta cidade* county* provinc* provinz* state bundesland*
        land kreis* district* distri* canton* kanton* prefect* departement* urb* rural* residen* wohn* gewest
        *郵便* *都道府県* *地域* *住居* *地区* *邮编* *省* *市* *регион* *город*""",
    "marital": """
        marit* marst* *civil *civil_status civil_status familienstand* zivilstand* etat_civil estado_civil stato_civile
        burgerlijk* burgerstand stan_cywilny *婚姻* *配偶*""",
    "education": """
        educ* bildung* schul* *schulung ausbildung* school* isced* degree* diplom* etude* estudio* istruz* opleiding*
        escolar* onderwijs* wykszt* utbildning* *学歴* *教育* *学历* *образов*""",
    "origin": "race ethni* etni* rasse caste migration* ancestry *民族* *人種*",
    "work": """
        occup* occu* job* profession* profesion* profiss* beruf* *beruf metier* isco* workclass* employ* industr* nace
        ocupac* puesto cargo branche* sector* beroep* zawod* yrke* arbeit* *職業* *职业* *професс*""",
    "family": """
        hhsize hh_size *size children* *kinder kinder* enfants hijos figli filhos kinderen relat* relation* lien
        dependents* *人数*""",
    "health": """
        disease* diagnos* condition* icd* krank* maladie* enfermedad* malatt* doenca* ziekte* therap* hiv* drug* medic*
        symptom* disab* handicap* behinder* pathol* treatment* behandl* choroba* *病* *診断* *诊断* *диагноз*""",
    "money": """
        income* salary* wage* debt* charge* cost* *costs expend* saving* asset* tax* wealth* money* amount* payment*
        pension* benefit* earning* *einkommen einkommen* gehalt* *lohn lohn* schulden* vermogen* vermoegen* *kosten
        kosten* steuer* ausgaben* *miete miete revenu* salaire* dette* depense* impot* cout* montant* ingreso* sueldo*
        salario* deuda* gasto* renta* ahorro* reddito* stipendi* debito* costo* spesa* renda* divida* inkomen* loon
        schuld* uitgaven* bedrag* *所得* *収入* *年収* *給与* *費用* *费用* *收入* *工资* *доход* *зарплат*""",
    "belief": """
        religio* politi* partei* vote* voting confession* konfession* glaube* sexual* orientation* crime* convict*
        straf* criminal* union_member* gewerksch* *宗教* *政治*""",
    "text": """
        remark* comment* note notes bemerk* notiz* anmerk* description* remarque* observa* kommentar* opmerk* freitext*
        text* *備考* *备注*""",
}  # fmt: skip


class Hint(StrEnum):
    """What a name may hint at."""

    NUMBER = "number"
    PERSON = "person"
    HOUSEHOLD = "household"
    WEIGHT = "weight"
    SAMPLING = "sampling"
    BODY = "body"
    AGE = "age"
    BIRTH = "birth"
    SEX = "sex"
    COUNTRY = "country"
    PLACE = "place"
    MARITAL = "marital"
    EDUCATION = "education"
    ORIGIN = "origin"
    WORK = "work"
    FAMILY = "family"
    HEALTH = "health"
    MONEY = "money"
    BELIEF = "belief"
    TEXT = "text"

    @property
    def told(self) -> str:
        """What it is called in a sentence."""
        full = {"marital": "marital status", "family": "the household", "belief": "beliefs or offences"}
        return full.get(self.value, self.value)


YEAR = "year* jahr* annee* anio* ano anno jaar* rok aar *年* *год*"  # words for a year


# What others may know of a person, what they know best first.
KNOWN = (Hint.AGE, Hint.BIRTH, Hint.SEX, Hint.PLACE, Hint.COUNTRY, Hint.MARITAL, Hint.EDUCATION, Hint.ORIGIN,
         Hint.WORK, Hint.FAMILY)  # fmt: skip
SENSITIVE = (Hint.HEALTH, Hint.MONEY, Hint.BELIEF)
IDENTIFYING = (Hint.NUMBER, Hint.PERSON)


def hints(name: str) -> frozenset[Hint]:
    """Return what a name hints at.

    >>> sorted(hints("PatientId")), sorted(hints("Geburtsdatum")), sorted(hints("archive_box"))
    ([<Hint.NUMBER: 'number'>], [<Hint.BIRTH: 'birth'>, <Hint.BODY: 'body'>], [])
    """
    read = _read(name)
    return frozenset(Hint(meaning) for meaning in WORDS if _pattern(meaning).search(read))


def mentions(name: str, words: str) -> bool:
    """Whether one of some words stands in a name.

    >>> mentions("Home-State", "state region"), mentions("estate", "state")
    (True, False)
    """
    return re.search("|".join(map(_part, words.split())), _read(name)) is not None


def _read(name: str) -> str:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{6})(?=ID$)", "_", name)  # PatientId, PATIENTID; not COVID
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", parted).translate(MARKS)).casefold()
    return re.sub(r"[\W\d_]+", "_", plain)


# Accents of the scripts that have capitals; the marks of kana make other letters of them, and stay.
MARKS = dict.fromkeys(range(768, 880))


@cache
def _pattern(meaning: str) -> re.Pattern[str]:
    return re.compile("|".join(map(_part, WORDS[meaning].split())))


def _part(word: str) -> str:
    bare = word.strip("*")
    inside = re.escape(bare).replace(r"\*", "[a-z]*")
    before = "" if word.startswith("*") else r"(?<![^\W_])"
    after = "" if word.endswith("*") else r"(?![^\W_])"
    return f"{before}{inside}{after}"
